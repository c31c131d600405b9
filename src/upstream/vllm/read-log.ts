/** vLLM's startup log, in each of its forms, and the signs of trouble behind it. */
import { eachLine, type SignText } from '../lines.js';
import { parsePairs } from '../python-literal.js';
import type { Fact, LogSign, Reading } from '../reading.js';
import { asPort, isSecretName, keepable, tokensOf } from '../shapes.js';
import { flagFactsOf } from './flags.js';

const SIGNS_MAX = 1000;

const SIGNS: readonly SignText<LogSign>[] = [
  { sign: 'invalid-blocks-read', part: 'Potentially invalid KV blocks for unrecognized request' },
  { sign: 'lease-expired', part: 'Releasing expired KV blocks for request' },
  { sign: 'block-count-overridden', part: 'Overriding num_gpu_blocks=' },
  { sign: 'start-refused-for-pool', part: 'To serve at least one request with the model' },
  { sign: 'start-refused-for-pool', part: 'No available memory for the cache blocks' },
  { sign: 'dev-mode', part: 'SECURITY WARNING: Development endpoints are enabled' },
  { sign: 'dev-mode', part: 'Route: /collective_rpc' },
  { sign: 'retrieved-too-few', part: 'The number of retrieved tokens is less than the expected number of tokens' },
];

const MARKS: readonly RegExp[] = [
  /\bnon-default args: \{/,
  /\bInitializing a V[01] LLM engine\b/,
  /\bvLLM API server version\b/,
  /\bKV cache size: [\d,]+ tokens\b/,
  /\b# GPU blocks: \d+/,
  /\bUsing max model len \d+/,
  /\bkv_cache_utils\.py:\d+\]/,
  /\bStarting vLLM (?:API )?server\b/,
  /Potentially invalid KV blocks for unrecognized request/,
];

export function isVllmLog(text: string): boolean {
  return MARKS.some((mark) => mark.test(text));
}

/** Null: it is no log of vLLM. A log of several starts tells of the last one. */
export function readLog(text: string): Reading | null {
  if (!isVllmLog(text)) return null;
  let facts: Fact[] = [];
  let signs = 0;
  eachLine(text, (line, number) => {
    if (line.includes('non-default args: {')) {
      const args = argumentFacts(line, number);
      if (args !== null) {
        const version = facts.findLast(({ kind }) => kind === 'version');
        facts = version === undefined ? args : [version, ...args];
        signs = 0;
        return;
      }
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
  return { engine: 'vllm', facts };
}

/** What is not named there has its default. */
function argumentFacts(line: string, number: number): Fact[] | null {
  const start = line.indexOf('non-default args: {') + 'non-default args: {'.length;
  const pairs = parsePairs(line, start, ':');
  if (pairs === null) return null;
  const facts: Fact[] = [{ kind: 'flags-complete', form: 'given', line: number }];
  if (!pairs.has('kv_transfer_config')) facts.push({ kind: 'role', role: 'single', line: number });
  for (const [name, value] of pairs) {
    const shown = isSecretName(name) && value !== null && value !== '' && value !== '[]';
    if (shown) facts.push({ kind: 'key-shown', field: `non-default args.${name}`, line: number });
    facts.push(...flagFactsOf(name.replaceAll('_', '-'), keepable(name, value), 'given', number));
  }
  return facts;
}

/** With data parallelism a line is marked `EngineCore_DP0`, `EngineCore_0` or `DP0`. */
function rankOf(line: string): string | null {
  return /\b(?:EngineCore_(?:DP)?|DP)(\d{1,4})\b/.exec(line.slice(0, 200))?.[1] ?? null;
}

function figureFacts(line: string, number: number): Fact[] {
  if (line.includes('KV cache size: ')) return sizeFacts(line, number);
  if (line.includes('Maximum concurrency for ')) return concurrencyFacts(line, number);
  if (line.includes('Auto-fit max_model_len: ')) return autoFitFacts(line, number);
  if (line.includes('Overriding num_gpu_blocks=')) {
    const value = /num_gpu_blocks_override=(\d{1,12})\b/.exec(line)?.[1];
    if (value === undefined) return [];
    return [{ kind: 'flag', name: 'num-gpu-blocks-override', value, form: 'resolved', line: number }];
  }
  if (line.includes('Using max model len ')) {
    const tokens = tokensOf(/Using max model len (\d{1,13})\b/.exec(line)?.[1]);
    return tokens === null ? [] : [{ kind: 'advertised', tokens, line: number }];
  }
  if (line.includes('Route: /')) {
    const path = /Route: (\/\S{0,200}), Methods/.exec(line)?.[1];
    return path === undefined ? [] : [{ kind: 'route', path, line: number }];
  }
  if (line.includes('Resolved architecture: ')) {
    const name = /Resolved architecture: (\w{1,100})/.exec(line)?.[1];
    return name === undefined ? [] : [{ kind: 'architecture', name, line: number }];
  }
  return startFacts(line, number);
}

/** Up to mid-2026 the concurrency stood on a line of its own; now it ends this one. */
function sizeFacts(line: string, number: number): Fact[] {
  const tokens = tokensOf(/\bKV cache size: ([\d,]{1,20}) tokens/.exec(line)?.[1]);
  const facts: Fact[] = concurrencyFacts(line, number);
  if (tokens !== null) facts.unshift({ kind: 'pool', tokens, rank: rankOf(line), estimate: false, line: number });
  return facts;
}

function concurrencyFacts(line: string, number: number): Fact[] {
  const match = /Maximum concurrency for ([\d,]{1,20}) tokens per request: (\d{1,12}(?:\.\d{1,12})?)x/.exec(line);
  if (match === null) return [];
  const context = tokensOf(match[1]);
  const facts: Fact[] = [{ kind: 'concurrency', times: Number(match[2]), rank: rankOf(line), line: number }];
  if (context !== null) facts.push({ kind: 'advertised', tokens: context, line: number });
  return facts;
}

function autoFitFacts(line: string, number: number): Fact[] {
  const reduced = tokensOf(/Auto-fit max_model_len: reduced from \d{1,13} to (\d{1,13})\b/.exec(line)?.[1]);
  if (reduced === null) return [];
  return [
    { kind: 'sign', sign: 'context-auto-fitted', line: number },
    { kind: 'advertised', tokens: reduced, line: number },
  ];
}

function startFacts(line: string, number: number): Fact[] {
  const facts: Fact[] = [];
  const version =
    /Initializing a V[01] LLM engine \(v([^\s)]{1,60})\)/.exec(line)?.[1] ??
    /vLLM API server version (\S{1,60})/.exec(line)?.[1] ??
    /█ {1,4}version (\S{1,60})\s*$/.exec(line)?.[1];
  if (version !== undefined) facts.push({ kind: 'version', text: version, line: number });
  if (line.includes('LLM engine (v')) {
    const context = tokensOf(/\bmax_seq_len=(\d{1,13})\b/.exec(line)?.[1]);
    if (context !== null) facts.push({ kind: 'advertised', tokens: context, line: number });
  }
  const server = /Starting vLLM (?:API )?server(?: \d{1,3})? on https?:\/\/(\S{1,255}):(\d{1,5})\b/.exec(line);
  const port = asPort(server?.[2]);
  if (server !== null && port !== null) facts.push({ kind: 'listens', host: server[1]!, port, line: number });
  if (line.includes('Application startup complete')) facts.push({ kind: 'ready', line: number });
  return facts;
}
