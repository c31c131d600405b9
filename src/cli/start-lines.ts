/** What a person sees when the server has started. */
import { escapeControl } from '../base/text.js';
import { faultsOf } from '../handoff/faults.js';
import { ALL_GUARDS, guardsOf } from '../handoff/guards.js';
import type { Rules } from '../handoff/layout.js';
import type { EngineFacts, StartFacts } from './start-facts.js';

export interface ShownKeys {
  /** Null: not to be shown here. */
  readonly keys: ReadonlyMap<string, string> | null;
  readonly keysFile: string | null;
}

/** Every line of a start with a fault on or a guard off begins with this, so that it cannot be overlooked. */
export function brokenMark(rules: Rules): string {
  const faults = faultsOf(rules.faults);
  const off = guardsOf(ALL_GUARDS & ~rules.guards);
  if (faults.length === 0 && off.length === 0) return '';
  const parts = [];
  if (faults.length > 0) parts.push(`FAULT ${faults.join(', ')}`);
  if (off.length > 0) parts.push(`GUARDS OFF ${off.length === guardsOf(ALL_GUARDS).length ? 'all' : off.join(', ')}`);
  return `[${parts.join('; ')}] `;
}

export function startLines(facts: StartFacts, shown: ShownKeys): string {
  const mark = brokenMark(facts.rules);
  const model = facts.engines[0]?.models[0] ?? 'lab';
  const lines = [
    'Cofferdam serves two numbers side by side, and refuses what does not fit:',
    '',
    ...(facts.engines.length === 0 ? embeddedLines(facts) : facts.engines.flatMap(engineLines)),
    `  tenants             ${facts.url}/v1 (OpenAI-compatible, model \`${model}\`)`,
    `  operators           ${facts.opsUrl} (a page; /metrics, /findings, /healthz)`,
    '',
  ];
  const first = facts.tenants[0]?.name ?? '';
  for (const { name, keyFingerprint } of facts.tenants) {
    const key = shown.keys?.get(name);
    lines.push(`  ${name.padEnd(18)}  ${key === undefined ? `key with fingerprint ${keyFingerprint}` : key}`);
  }
  if (shown.keysFile !== null) lines.push(`  keys                in ${shown.keysFile} (mode 0600, removed at the end)`);
  lines.push('', 'Try it:', '', `  ${tryLine(facts, model, bearerText(first, shown))}`, '', 'Ctrl-C ends it.', '');
  return lines.map((line) => `${mark}${line}`.trimEnd()).join('\n');
}

function embeddedLines(facts: StartFacts): string[] {
  return [
    `  advertised context  ${facts.advertised} tokens`,
    `  prefill pool        ${facts.prefillPool} tokens`,
    `  decode pool         ${facts.decodePool} tokens`,
    `  effective limit     ${facts.effectiveLimit} tokens of prompt, set by the ${facts.limitedBy}`,
    '',
  ];
}

/** An engine that is there: each of its nodes with the two numbers, and what follows from all of them. */
function engineLines(engine: EngineFacts): string[] {
  const tokens = (count: number | null): string => (count === null ? 'not said' : `${count} tokens`);
  return [
    `  ${engine.name}: ${engine.kind}, model ${engine.models.map((name) => `\`${escapeControl(name)}\``).join(', ')}`,
    ...engine.nodes.map(
      ({ node, role, advertised, pool }) =>
        `    ${escapeControl(node)}${role === 'single' ? '' : ` (${role})`}: advertised context ${tokens(advertised)}, KV pool ${tokens(pool)}`,
    ),
    `    effective limit   ${engine.effectiveLimit} tokens of prompt, set by the ${engine.limitedBy}`,
    `    prompts counted   ${engine.counted}`,
    '',
  ];
}

function tryLine(facts: StartFacts, model: string, bearer: string): string {
  const asked =
    facts.engines.length === 0
      ? {
          path: 'completions',
          body: { model, max_tokens: 9, prompt: 'The word of the day is cofferdam. Today the word of the day is ' },
        }
      : {
          path: 'chat/completions',
          body: { model, max_tokens: 16, messages: [{ role: 'user', content: 'Say hello.' }] },
        };
  return `curl -s ${facts.url}/v1/${asked.path} -H "Authorization: Bearer ${bearer}" -H 'Content-Type: application/json' -d '${JSON.stringify(asked.body).replaceAll("'", "'\\''")}'`;
}

/** What stands behind `Bearer` in a line that works when pasted. */
function bearerText(tenant: string, shown: ShownKeys): string {
  const key = shown.keys?.get(tenant);
  if (key !== undefined) return key;
  if (shown.keysFile !== null) return `$(sed -n 's/^${tenant}=//p' ${shown.keysFile})`;
  return `$KEY_OF_${tenant.toUpperCase().replaceAll('-', '_')}`;
}
