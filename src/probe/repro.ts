/** A shell script that replays one hit with curl alone. It holds prompts of ours, and no key: those come from the environment. */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { postOf } from './client.js';
import type { HitRequests, Sent } from './lab.js';
import { endpointOf } from './resume.js';
import type { Hit } from './result.js';
import type { ProbeTarget } from './target.js';

/** What is kept of a run for its script: the first hit whose two requests are known, else the first at all. */
export interface FirstHit {
  readonly hit: Hit;
  readonly requests: HitRequests;
}

/** Rounds of the script: what leaks at a race may need several. */
const ROUNDS = 20;
const DEADLINE_S = 60;
const OWNER_ONLY = 0o700;

/** Whether `next` replays better than what is kept. */
export function replaysBetter(kept: FirstHit | null, next: FirstHit): boolean {
  if (next.hit.marker === null) return false;
  return kept === null || (kept.requests.planting === null && next.requests.planting !== null);
}

export interface ScriptFile {
  write(text: string): void;
  /** A file that nothing was written to is taken away. */
  close(): void;
}

/** Throws CodedError `usage` where it can't be made or exists: it is opened before anything is sent. */
export function openScript(path: string): ScriptFile {
  let file: number;
  try {
    file = openSync(path, 'wx', OWNER_ONLY);
  } catch (thrown) {
    const why = (thrown as NodeJS.ErrnoException).code === 'EEXIST' ? 'one that is there' : 'one that can not be made';
    throw new CodedError('usage', `Expected \`--repro\` to name a new file, got ${why}: ${shown(path)}`);
  }
  let written = false;
  return {
    write: (text) => {
      written = true;
      writeSync(file, text);
    },
    close: () => {
      closeSync(file);
      if (!written) rmSync(path, { force: true });
    },
  };
}

/** The whole script. `hit` has a marker. */
export function scriptOf(target: ProbeTarget, { hit, requests }: FirstHit, tool: string): string {
  const variables = keyVariables(target);
  const { reading, planting } = requests;
  const both = planting === null ? [reading] : [planting, reading];
  const used = [...new Set(both.map((sent) => sent.tenant?.name ?? ''))].flatMap((name) => variables.get(name) ?? []);
  const fragment = (hit.marker ?? '').slice(hit.markerOffset, hit.markerOffset + hit.length);
  const together = planting !== null && (hit.overlapMs ?? 0) > 0;
  const [plantName, readName] = [`${hit.planted ?? 'planting'}`, hit.request];
  return `${[
    '#!/bin/sh',
    ...headLines(hit, planting !== null).map((line) => `# ${line}`),
    `# Made by cofferdam probe ${plain(tool)}. Exit 0: the fragment came back; 1: it did not, in ${ROUNDS} rounds.`,
    'set -eu',
    'umask 077',
    ...used.map(({ variable, tenant }) => `: "\${${variable}:?set ${variable} to the key of tenant ${tenant}}"`),
    `endpoint=${quoted(endpointOf(target))}`,
    `fragment=${quoted(fragment)}`,
    'work=$(mktemp -d)',
    `trap 'rm -rf "$work"' EXIT`,
    ...both.flatMap((sent) => requestLines(target, sent, sent === reading ? 'reading' : 'planting', variables)),
    'round=0',
    `while [ "$round" -lt ${ROUNDS} ]; do`,
    '  round=$((round + 1))',
    ...(planting === null
      ? []
      : [`  # ${plain(plantName)}: plants the marker.`, `  ${together ? 'planting &' : 'planting'}`]),
    `  # ${plain(readName)}: read it.`,
    '  reading',
    ...(together ? ['  wait'] : []),
    '  # The pieces of a stream joined: what stands in them in a row stands in a row here.',
    `  sed -n -e 's/.*"text": *"\\([^"]*\\)".*/\\1/p' -e 's/.*"content": *"\\([^"]*\\)".*/\\1/p' "$work/reading.answer" | tr -d '\\n' > "$work/joined"`,
    '  if grep -qF -- "$fragment" "$work/joined" "$work/reading.answer"; then',
    `    echo "round $round: the answer of tenant ${plain(hit.tenant)} holds $fragment, planted by tenant ${plain(hit.owner ?? 'unknown')}"`,
    '    exit 0',
    '  fi',
    'done',
    `echo "not seen in ${ROUNDS} rounds"`,
    'exit 1',
  ].join('\n')}\n`;
}

function headLines(hit: Hit, plantingKnown: boolean): string[] {
  const overlap = hit.overlapMs === null ? 'unknown' : `${hit.overlapMs} ms`;
  const left = hit.leftBefore.length === 0 ? 'none' : hit.leftBefore.slice(-8).join(', ');
  return [
    `Replays one hit of the experiment ${plain(hit.experiment)}: the answer ${plain(hit.request)} to tenant ${plain(hit.tenant)}`,
    `held ${hit.length} characters of a marker that tenant ${plain(hit.owner ?? 'unknown')} had planted with ${plain(hit.planted ?? 'an unknown request')}.`,
    `Both were open together for ${overlap}; requests left within seconds before: ${plain(left)}.`,
    ...(plantingKnown ? [] : ['The request that planted it is not known, so only the reading one is sent.']),
    'A hit that took other requests beside these two, or a race, may need several runs.',
  ];
}

interface KeyVariable {
  readonly variable: string;
  readonly tenant: string;
}

/** `KEY_A` for the tenant `a`; tenants without a key have none. */
function keyVariables(target: ProbeTarget): Map<string, KeyVariable> {
  const variables = new Map<string, KeyVariable>();
  const taken = new Set<string>();
  for (const { name, key } of target.tenants) {
    if (key === null) continue;
    const base = `KEY_${name.toUpperCase().replace(/[^A-Z0-9]/g, '_')}`;
    let variable = base;
    for (let i = 2; taken.has(variable); i++) variable = `${base}_${i}`;
    taken.add(variable);
    variables.set(name, { variable, tenant: name });
  }
  return variables;
}

/** A function of the shell that sends one request; its body and headers lie in files, so that no key is an argument. */
function requestLines(
  target: ProbeTarget,
  sent: Sent,
  name: 'planting' | 'reading',
  variables: ReadonlyMap<string, KeyVariable>,
): string[] {
  const { method, path, body } = 'prompt' in sent ? postOf(target, sent) : sent;
  const key = variables.get(sent.tenant?.name ?? '');
  const headers = Object.entries(sent.headers ?? {}).map(([header, value]) => `${header}: ${value}`);
  if (body !== undefined) headers.push('Content-Type: application/json');
  headers.push('User-Agent: cofferdam-probe-replay');
  const limitMs = 'prompt' in sent && sent.leave !== undefined && 'afterMs' in sent.leave ? sent.leave.afterMs : null;
  const limit = limitMs === null ? String(DEADLINE_S) : (Math.max(1, limitMs) / 1000).toFixed(3);
  return [
    `{`,
    ...headers.map((header) => `  printf '%s\\n' ${quoted(header.replace(/[\r\n]/g, ' '))}`),
    ...(key === undefined ? [] : [`  printf 'Authorization: Bearer %s\\n' "$${key.variable}"`]),
    `} > "$work/${name}.headers"`,
    ...(body === undefined ? [] : [`cat > "$work/${name}.json" <<'COFFERDAM_BODY'`, body, 'COFFERDAM_BODY']),
    `${name}() {`,
    `  : > "$work/${name}.answer"`,
    `  curl -sS -N --path-as-is --max-time ${limit} -X ${method} -H @"$work/${name}.headers" \\`,
    ...(body === undefined ? [] : [`    --data-binary @"$work/${name}.json" \\`]),
    `    -o "$work/${name}.answer" "$endpoint"${quoted(path)} || true`,
    `}`,
  ];
}

/** For the shell, as it is. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** For a comment or inside double quotes: names and ids, nothing else. */
function plain(text: string): string {
  return text.replace(/[^\w., -]/g, '');
}
