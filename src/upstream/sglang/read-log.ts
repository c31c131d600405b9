/** SGLang's log: what a start tells, and the signs of trouble behind it. */
import { eachLine, type SignText } from '../lines.js';
import { parsePairs } from '../python-literal.js';
import type { Fact, LogSign, Reading } from '../reading.js';
import { asPort, isSecretName, keepable, tokensOf } from '../shapes.js';
import { sglangRole } from './read.js';

/** Signs of one kind that are kept one by one; beyond that they are only counted by whoever counts facts. */
const SIGNS_MAX = 1000;

const SIGNS: readonly SignText<LogSign>[] = [
  { sign: 'pool-below-context-warning', part: 'fewer than --context-length' },
  { sign: 'deferred-release-timeout', part: 'without a full drain ack' },
  { sign: 'checksum-mismatch', part: 'KV checksum mismatch' },
  { sign: 'checksum-skipped', part: 'KV checksum skipped' },
  { sign: 'canary-alive', part: '[canary] step=' },
  { sign: 'canary-installed', part: 'attach_canary_buffers' },
  { sign: 'canary-violation', part: 'kv_canary violation' },
  { sign: 'canary-violation', part: 'KV cache canary violation detected' },
  { sign: 'decode-wait-timeout', part: 'in KVPoll.WaitingForInput' },
  { sign: 'transfer-failed', part: 'Prefill transfer failed for request' },
  { sign: 'transfer-failed', part: 'Decode transfer failed for request' },
  { sign: 'transfer-failed', part: 'Decode handshake failed for request' },
  { sign: 'transfer-failed', part: 'Prefill bootstrap failed for request' },
  { sign: 'metadata-corruption', part: 'Metadata corruption detected' },
  { sign: 'metadata-corruption', part: 'Context corruption detected' },
  { sign: 'pair-mismatch', part: 'Page size mismatch' },
  { sign: 'pair-mismatch', part: 'KV cache dtype mismatch' },
  { sign: 'pair-mismatch', part: 'KV layout mismatch' },
  { sign: 'decode-radix-cache', part: 'EXPERIMENTAL: Radix cache is enabled for decode server' },
];

/** One of these must be there: a text without any is no log of SGLang. */
const MARKS: readonly RegExp[] = [
  /\bserver_args=(?:ServerArgs\(|\{)/,
  /\bmax_total_num_tokens=\d+/,
  /\bKV Cache is allocated\b|\bKV cache allocated\. dtype\b/,
  /\bKV pool holds \d+ tokens, fewer than --context-length\b/,
  /\bCommonKVBootstrapServer started\b/,
  /\b(?:Radix cache is (?:disabled|enabled)|KV cache is forced as chunk cache) for decode server\b/,
  /\bPrefill batch[,.] ?#new-seq\b|\bDecode batch[,.] ?#running-req\b/,
  /\[canary\] step=/,
  /\bTree cache initialized: source=/,
];

export function isSglangLog(text: string): boolean {
  return MARKS.some((mark) => mark.test(text));
}

/** Null: it is no log of SGLang. A log of several starts tells of the last one. */
export function readLog(text: string): Reading | null {
  if (!isSglangLog(text)) return null;
  let facts: Fact[] = [];
  let signs = 0;
  eachLine(text, (line, number) => {
    if (line.includes('server_args=')) {
      const args = argumentFacts(line, number);
      if (args !== null) {
        facts = args;
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
  return { engine: 'sglang', facts: settled(facts) };
}

/** The pool's own line is a second-best figure: with sliding windows there is one for each of two pools. */
function settled(facts: Fact[]): Fact[] {
  const exact = facts.some((fact) => fact.kind === 'pool' && !fact.estimate);
  const roles = facts.some((fact) => fact.kind === 'role' && fact.line !== undefined);
  return facts.filter((fact) => {
    if (fact.kind === 'pool' && fact.estimate) return !exact;
    return fact.kind !== 'role' || fact.line !== undefined || !roles;
  });
}

function argumentFacts(line: string, number: number): Fact[] | null {
  const dataclass = line.indexOf('server_args=ServerArgs(');
  const dictionary = line.indexOf('server_args={');
  const pairs =
    dataclass >= 0
      ? parsePairs(line, dataclass + 'server_args=ServerArgs('.length, '=')
      : dictionary >= 0
        ? parsePairs(line, dictionary + 'server_args={'.length, ':')
        : null;
  if (pairs === null) return null;
  const facts: Fact[] = [{ kind: 'flags-complete', form: 'resolved', line: number }];
  for (const [name, value] of pairs) {
    if (name.startsWith('_')) continue;
    const kept = keepable(name, value);
    facts.push({ kind: 'flag', name: name.replaceAll('_', '-'), value: kept, form: 'resolved', line: number });
    if (isSecretName(name) && value !== null && value !== '') {
      facts.push({ kind: 'key-shown', field: `server_args.${name}`, line: number });
    }
  }
  const role = pairs.has('disaggregation_mode') ? sglangRole(pairs.get('disaggregation_mode') ?? null) : null;
  if (role !== null) facts.push({ kind: 'role', role, line: number });
  const context = tokensOf(pairs.get('context_length'));
  if (context !== null) facts.push({ kind: 'advertised', tokens: context, line: number });
  const page = tokensOf(pairs.get('page_size'));
  if (page !== null) facts.push({ kind: 'page', tokens: page, line: number });
  const port = asPort(pairs.get('port'));
  const host = pairs.get('host');
  if (port !== null && typeof host === 'string') facts.push({ kind: 'listens', host, port, line: number });
  const model = pairs.get('served_model_name') ?? pairs.get('model_path');
  if (typeof model === 'string') facts.push({ kind: 'model', name: model, line: number });
  return facts;
}

function rankOf(line: string): string | null {
  return /\bDP(\d{1,4})\b/.exec(line.slice(0, 200))?.[1] ?? null;
}

function figureFacts(line: string, number: number): Fact[] {
  const facts: Fact[] = [];
  if (line.includes('max_total_num_tokens=')) {
    const pool = tokensOf(/\bmax_total_num_tokens=(\d{1,13})\b/.exec(line)?.[1]);
    if (pool !== null) facts.push({ kind: 'pool', tokens: pool, rank: rankOf(line), estimate: false, line: number });
    const context = tokensOf(/\bcontext_len=(\d{1,13})\b/.exec(line)?.[1]);
    if (context !== null) facts.push({ kind: 'advertised', tokens: context, line: number });
  } else if (line.includes('#tokens: ')) {
    const tokens = tokensOf(/allocated\. dtype: [^#]{0,80}#tokens: (\d{1,13})\b/.exec(line)?.[1]);
    if (tokens !== null) facts.push({ kind: 'pool', tokens, rank: rankOf(line), estimate: true, line: number });
  } else if (line.includes('KV pool holds ')) {
    const match = /KV pool holds (\d{1,13}) tokens, fewer than --context-length (\d{1,13})\b/.exec(line);
    const pool = tokensOf(match?.[1]);
    const context = tokensOf(match?.[2]);
    if (pool !== null) facts.push({ kind: 'pool', tokens: pool, rank: rankOf(line), estimate: false, line: number });
    if (context !== null) facts.push({ kind: 'advertised', tokens: context, line: number });
  } else if (line.includes('exceeds the maximum allowed length (')) {
    const limit = tokensOf(/exceeds the maximum allowed length \((\d{1,13}) tokens\)/.exec(line)?.[1]);
    if (limit !== null) facts.push({ kind: 'refused-from', tokens: limit, line: number });
    facts.push({ kind: 'sign', sign: 'length-refused', line: number });
  } else facts.push(...startFacts(line, number));
  return facts;
}

function startFacts(line: string, number: number): Fact[] {
  if (line.includes('CommonKVBootstrapServer started successfully on ')) {
    const match = /started successfully on (\S{1,255}):(\d{1,5})\b/.exec(line);
    const port = asPort(match?.[2]);
    const facts: Fact[] = [{ kind: 'role', role: 'prefill' }];
    if (match !== null && port !== null) facts.push({ kind: 'listens', host: match[1]!, port, line: number });
    return facts;
  }
  if (line.includes(' for decode server')) return [{ kind: 'role', role: 'decode' }];
  if (line.includes('Uvicorn running on http')) {
    const match = /Uvicorn running on https?:\/\/(\S{1,255}):(\d{1,5})\b/.exec(line);
    const port = asPort(match?.[2]);
    return match === null || port === null ? [] : [{ kind: 'listens', host: match[1]!, port, line: number }];
  }
  return line.includes('The server is fired up and ready to roll') ? [{ kind: 'ready', line: number }] : [];
}
