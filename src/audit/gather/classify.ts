/** What a text is, seen from its content alone. */
import { readMetrics as readOwnMetrics, readOwnServerInfo } from '../../upstream/cofferdam/read.js';
import { readCommandText } from '../../upstream/command/read.js';
import { parseYaml } from './tree.js';
import {
  readLog as readLlamaLog,
  readMetrics as readLlamaMetrics,
  readProps,
  readSlots,
} from '../../upstream/llamacpp/read.js';
import { readModels } from '../../upstream/models.js';
import type { Fact, Reading } from '../../upstream/reading.js';
import { asShape, field, keepableVariable } from '../../upstream/shapes.js';
import {
  readLoads,
  readMetrics as readSglangMetrics,
  readModelInfo,
  readServerInfo,
} from '../../upstream/sglang/read.js';
import { readLog as readSglangLog } from '../../upstream/sglang/read-log.js';
import { readMetrics as readVllmMetrics, readVersion } from '../../upstream/vllm/read.js';
import { readLog as readVllmLog } from '../../upstream/vllm/read-log.js';
import type { SourceKind } from '../facts.js';
import { isCompose } from './compose.js';
import { isKubernetes, unwrapped } from './kubernetes.js';
import type { Tree } from './yaml-tree.js';

export type Classified =
  | { readonly kind: Exclude<SourceKind, 'manifest' | 'person'>; readonly readings: readonly Reading[] }
  | { readonly kind: 'manifest'; readonly kubernetes: readonly Tree[]; readonly compose: readonly Tree[] }
  | { readonly kind: 'skipped'; readonly why: string };

/** Values of one list of variables that are kept. */
const VARIABLES_MAX = 2000;
const NOT_KNOWN = 'of no kind that is read here';

/** Never throws. */
export function classify(text: string): Classified {
  const start = text.slice(0, 2000).trimStart()[0];
  if (start === undefined) return { kind: 'skipped', why: 'empty' };
  if (start === '{' || start === '[') {
    const answer = classifyJson(text);
    if (answer !== null) return answer;
  }
  const variables = readVariables(text);
  if (variables !== null) return { kind: 'environment', readings: [variables] };
  const metrics = readAnyMetrics(text);
  if (metrics !== null) return { kind: 'metrics', readings: [metrics] };
  const log = readSglangLog(text) ?? readVllmLog(text) ?? readLlamaLog(text);
  if (log !== null) return { kind: 'log', readings: [log] };
  return classifyManifest(text) ?? classifyCommand(text) ?? { kind: 'skipped', why: NOT_KNOWN };
}

/** Null: it is no metrics text of an engine. */
export function readAnyMetrics(text: string): Reading | null {
  return readSglangMetrics(text) ?? readVllmMetrics(text) ?? readLlamaMetrics(text) ?? readOwnMetrics(text);
}

/** Null: it is no answer that an engine gives. */
export function readAnswer(json: unknown): Reading | null {
  return (
    readOwnServerInfo(json) ??
    readServerInfo(json) ??
    readModels(json) ??
    readProps(json) ??
    readSlots(json) ??
    readLoads(json) ??
    readModelInfo(json) ??
    readVersion(json) ??
    readRouter(json)
  );
}

/** `GET /get_server_info` of a router: it speaks for itself. */
function readRouter(json: unknown): Reading | null {
  const shape = asShape(json);
  if (shape === null || field(shape, 'router_manager') === undefined || field(shape, 'workers_count') === undefined)
    return null;
  return { engine: 'sglang-router', facts: [{ kind: 'role', role: 'router' }] };
}

function classifyJson(text: string): Classified | null {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return null;
  }
  const reading = readAnswer(json);
  if (reading !== null) return { kind: 'answer', readings: [reading] };
  const shape = asShape(json);
  // Objects of Kubernetes come as JSON too; YAML's parser takes them with their lines.
  if (shape !== null && ('apiVersion' in shape || 'services' in shape)) return null;
  return { kind: 'skipped', why: 'JSON of no kind that is read here' };
}

const MANIFEST_MARK = /^[ \t{]{0,100}(?:-[ \t]{1,20})?["']?(?:apiVersion|services)["']?[ \t]{0,20}:/m;

function classifyManifest(text: string): Classified | null {
  if (!MANIFEST_MARK.test(text)) return null;
  if (/^[ \t]{0,200}\{\{-?[ \t]/m.test(text)) {
    return { kind: 'skipped', why: 'a template of Helm: give the output of `helm template`' };
  }
  const parsed = parseYaml(text);
  if ('why' in parsed) return { kind: 'skipped', why: parsed.why };
  if (parsed.documents.length === 0) return { kind: 'skipped', why: 'manifests of kinds that start nothing' };
  const kubernetes = parsed.documents.flatMap(unwrapped).filter(isKubernetes);
  const compose = parsed.documents.filter(isCompose);
  if (kubernetes.length + compose.length === 0) return null;
  return { kind: 'manifest', kubernetes, compose };
}

function classifyCommand(text: string): Classified | null {
  const readings = readCommandText(text);
  return readings.length === 0 ? null : { kind: 'command', readings };
}

/** `/proc/PID/environ` (parted by NUL) or a file of `NAME=value` lines. Null: most of it is something else. */
function readVariables(text: string): Reading | null {
  const nul = text.includes('\0');
  const lines = text.split(nul ? '\0' : '\n').slice(0, VARIABLES_MAX * 2);
  const facts: Fact[] = [];
  let other = 0;
  for (const [index, line] of lines.entries()) {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    const match = /^(?:export\s+)?([A-Za-z_]\w{0,200})=(.*)$/s.exec(trimmed);
    // A log line such as `max_total_num_tokens=…` is written alike, but not in capitals.
    if (match === null || /[a-z]/.test(match[1]!) || / --?[a-z]/.test(match[2]!.slice(0, 2000))) other++;
    else if (facts.length < VARIABLES_MAX) facts.push(variable(match[1]!, match[2]!, nul ? undefined : index + 1));
  }
  if (facts.length < 2 || other > facts.length / 4) return null;
  return { engine: engineOfVariables(facts), facts: [{ kind: 'variables-complete', prefix: '' }, ...facts] };
}

function variable(name: string, value: string, line: number | undefined): Fact {
  const plain = value.replace(/^(["'])(.*)\1$/s, '$2');
  return { kind: 'variable', name, value: keepableVariable(name, plain), ...(line === undefined ? {} : { line }) };
}

function engineOfVariables(facts: readonly Fact[]): Reading['engine'] {
  const begins = (prefix: string): boolean =>
    facts.some((fact) => fact.kind === 'variable' && fact.name.startsWith(prefix));
  const found = [begins('SGLANG_') && 'sglang', begins('VLLM_') && 'vllm', begins('LLAMA_') && 'llamacpp'].filter(
    Boolean,
  );
  return found.length === 1 ? (found[0] as Reading['engine']) : null;
}
