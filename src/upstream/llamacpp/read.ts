/** llama-server: what its answers, metrics and log say. Pure; null for what is none of them. */
import { eachLine, type SignText } from '../lines.js';
import { parsePrometheus } from '../prometheus.js';
import type { Fact, LogSign, Reading } from '../reading.js';
import { asPort, asShape, asText, asTokens, field, tokensOf } from '../shapes.js';

const SIGNS_MAX = 1000;
/** Slots of one server that are looked at. */
export const SLOTS_MAX = 4096;

/** `GET /props`. */
export function readProps(json: unknown): Reading | null {
  const props = asShape(json);
  const settings = props === null ? null : asShape(field(props, 'default_generation_settings'));
  if (props === null || settings === null || !('total_slots' in props)) return null;
  const facts: Fact[] = [{ kind: 'role', role: 'single' }];
  const count = asTokens(field(props, 'total_slots'));
  const contextEach = asTokens(field(settings, 'n_ctx'));
  if (count !== null) facts.push({ kind: 'slots', count, contextEach, unified: null });
  // The room of one slot is allocated at the start, for itself or out of a pool that all share: it can be filled by one request.
  if (contextEach !== null) facts.push({ kind: 'advertised', tokens: contextEach }, whole(contextEach));
  const build = asText(field(props, 'build_info'));
  if (build !== null) facts.push({ kind: 'version', text: build });
  const model = asText(field(props, 'model_alias')) ?? asText(field(props, 'model_path'));
  if (model !== null) facts.push({ kind: 'model', name: model });
  for (const [name, flag] of PROPS_FLAGS) {
    const value = field(props, name);
    if (typeof value === 'boolean') facts.push({ kind: 'flag', name: flag, value: String(value), form: 'resolved' });
  }
  return { engine: 'llamacpp', facts };
}

const PROPS_FLAGS: readonly (readonly [string, string])[] = [
  ['endpoint_slots', 'slots'],
  ['endpoint_props', 'props'],
  ['endpoint_metrics', 'metrics'],
];

const whole = (tokens: number, line?: number): Fact => ({
  kind: 'pool',
  tokens,
  rank: null,
  estimate: false,
  ...(line === undefined ? {} : { line }),
});

/** `GET /slots`. */
export function readSlots(json: unknown): Reading | null {
  if (!Array.isArray(json) || json.length === 0) return null;
  const slots = (json as unknown[]).slice(0, SLOTS_MAX).map(asShape);
  const [first] = slots;
  if (first === undefined || first === null || !('n_ctx' in first) || !('is_processing' in first)) return null;
  const facts: Fact[] = [
    { kind: 'slots', count: slots.length, contextEach: asTokens(field(first, 'n_ctx')), unified: null },
  ];
  return { engine: 'llamacpp', facts };
}

/** `GET /metrics`; null without one of llama-server's. */
export function readMetrics(text: string): Reading | null {
  const samples = parsePrometheus(text, (name) => name.startsWith('llamacpp:'));
  if (samples.length === 0) return null;
  return { engine: 'llamacpp', facts: samples.map((sample) => ({ kind: 'sample', ...sample })) };
}

const SIGNS: readonly SignText<LogSign>[] = [
  { sign: 'all-requests-ended', part: 'Context size has been exceeded' },
  { sign: 'pool-exhausted', part: 'failed to find a memory slot' },
  { sign: 'pool-exhausted', part: 'failed to find free space in the KV cache' },
  { sign: 'no-key-any-origin', part: 'no API key is set and CORS allows all origins' },
  { sign: 'slot-purged', part: 'purging slot ' },
  { sign: 'length-refused', part: 'exceeds the available context size' },
];

const MARKS: readonly RegExp[] = [
  /\bn_slots = \d+/,
  /\bn_ctx_slot = \d+/,
  /\bllama_server: (?:initializing|listening|model loaded)\b/,
  /\bsrv +(?:load_model|llama_server|init|update_slots|main): /,
  /\bllama_context: n_ctx/,
  /\bslot +(?:launch_slot_|release|print_timing|get_availabl|load_model): id /,
];

export function isLlamaLog(text: string): boolean {
  return MARKS.some((mark) => mark.test(text));
}

/** Null: it is no log of llama-server. A log of several starts tells of the last one. */
export function readLog(text: string): Reading | null {
  if (!isLlamaLog(text)) return null;
  let facts: Fact[] = [];
  let signs = 0;
  eachLine(text, (line, number) => {
    if (/\bllama_server: initializing\b/.test(line)) {
      facts = [];
      signs = 0;
    }
    facts.push(...figureFacts(line, number));
    if (signs >= SIGNS_MAX) return;
    for (const { sign, part } of SIGNS) {
      if (!line.includes(part)) continue;
      facts.push({ kind: 'sign', sign, line: number });
      signs++;
      break;
    }
  });
  return { engine: 'llamacpp', facts: [{ kind: 'role', role: 'single' }, ...facts] };
}

function figureFacts(line: string, number: number): Fact[] {
  if (line.includes('n_ctx_slot')) {
    const match = /\bn_slots = (\d{1,6}), n_ctx_slot = (\d{1,12})\b(?:, kv_unified = '(true|false)')?/.exec(line);
    const count = tokensOf(match?.[1]);
    const contextEach = tokensOf(match?.[2]);
    if (count === null || contextEach === null) return [];
    const unified = match?.[3] === undefined ? null : match[3] === 'true';
    return [
      { kind: 'slots', count, contextEach, unified, line: number },
      { kind: 'advertised', tokens: contextEach, line: number },
      whole(contextEach, number),
    ];
  }
  if (line.includes('n_ctx_train (')) {
    const trained = tokensOf(/n_ctx_train \((\d{1,12})\)/.exec(line)?.[1]);
    return trained === null ? [] : [{ kind: 'context-trained', tokens: trained, line: number }];
  }
  if (line.includes('listening on http')) {
    const match = /listening on https?:\/\/(\S{1,255}):(\d{1,5})\b/.exec(line);
    const port = asPort(match?.[2]);
    if (match === null || port === null) return [];
    return [
      { kind: 'listens', host: match[1]!, port, line: number },
      { kind: 'ready', line: number },
    ];
  }
  const build = /^(?:\S+ I )?(?:build: |build_info: )(b?\d{1,9}(?:-[0-9a-f]{6,40})?)\b/.exec(line)?.[1];
  if (build === undefined) return [];
  return [{ kind: 'version', text: build.startsWith('b') ? build : `b${build}`, line: number }];
}
