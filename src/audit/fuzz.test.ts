/**
 * Goal: no text from outside crashes a parser, holds it up, or makes the audit pass what it did not read.
 * Method: real engines' texts, mutated; 2,000 of each kind, 100,000 with COFFERDAM_LONG=1; the seed is in the title.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Prng } from '../base/prng.js';
import { assess } from './assess.js';
import { classify } from './gather/classify.js';
import { composePieces } from './gather/compose.js';
import { fleetOf } from './gather/gather.js';
import { kubernetesPieces } from './gather/kubernetes.js';
import type { Piece } from './gather/piece.js';
import { RULES } from './registry.js';

const SEED = Number(process.env.SEED ?? 7);
const INPUTS = process.env.COFFERDAM_LONG === '1' ? 100_000 : 2_000;
/** Milliseconds of CPU for one input; measured again before it is believed, since the machine is shared. */
const INPUT_MS_MAX = 50;
const RETRIES = 3;

const fixture = (name: string): string =>
  readFileSync(new URL(`../../../test/fixtures/audit/${name}`, import.meta.url), 'utf8');
const head = (text: string, lines: number): string => text.split('\n').slice(0, lines).join('\n');

const KINDS: Readonly<Record<string, readonly string[]>> = {
  logs: [
    fixture('incident/prefill.log'),
    head(fixture('captures/vllm-0.32.0-cpu/01-startup-pool-large.log'), 60),
    head(fixture('captures/llama-server-b11434/startup.log'), 30),
  ],
  metrics: [
    'sglang:max_total_num_tokens{dp_rank="0",engine_type="prefill",model_name="m"} 681280.0\nsglang:context_len{dp_rank="0"} 1.048576e+06\n',
    fixture('captures/vllm-0.32.0-cpu/02-metrics-idle-pool-large.txt')
      .split('\n')
      .filter((line) => /cache_config|usage_perc|waiting/.test(line))
      .join('\n'),
    fixture('captures/llama-server-b11434/metrics.out'),
  ],
  answers: [
    fixture('captures/llama-server-b11434/props.out'),
    fixture('captures/llama-server-b11434/slots.out'),
    fixture('captures/sglang-0.5.18-pd-cpu/prefill.v1-loads.out'),
    fixture('captures/sglang-0.5.18-pd-cpu/prefill.v1-models.out'),
    '{"version":"0.5.23","model_path":"m","disaggregation_mode":"prefill","context_length":8192,"max_total_num_tokens":2048,"max_req_input_len":2042,"internal_states":[{"memory_usage":{"token_capacity":2048}}]}',
  ],
  commands: [
    'FOO=1 exec python3 -m sglang.launch_server --model-path m --context-length 8192 --max-total-tokens=2048 --api-key $KEY',
    'sh -c \'vllm serve m --max-model-len 128k --num-gpu-blocks-override 16 --block-size 128 --kv-transfer-config {"kv_connector":"NixlConnector"}\'',
    'llama-server -m x.gguf -c 4096 -np 4 --kv-unified',
  ],
  manifests: [
    fixture('manifests/incident.yaml'),
    fixture('manifests/remedied.yaml'),
    fixture('manifests/compose.yaml'),
  ],
  variables: ['SGLANG_X=1\nVLLM_API_KEY=abc\nPATH=/bin\nexport MC_FORCE_TCP=1\n', 'SGLANG_A=1\0PATH=/bin\0MC_B=2\0'],
};

const SPLICES = [
  '{',
  '}',
  '[',
  ']',
  '"',
  "'",
  '\\',
  '\n',
  ' ',
  ':',
  '- ',
  '&a ',
  '*a',
  '<<: ',
  '|\n',
  '$(X)',
  '${',
  '`',
  '#',
  '=',
  ',',
  'None',
  'null',
  'NaN',
  '-1',
  '0',
  '1e400',
  '99999999999999999999',
  'true',
  '__proto__',
  'constructor',
  '\u0000',
  '\u202e',
  '\ud800',
  'server_args=ServerArgs(',
  'max_total_num_tokens=',
  '#tokens: ',
  '--context-length',
  '{{ .Values }}',
  '[[[[[[[[[[[[[[[[',
];

function mutated(text: string, prng: Prng): string {
  let result = text;
  const times = 1 + prng.below(4);
  for (let i = 0; i < times; i++) {
    const at = prng.below(result.length + 1);
    const length = prng.below(1 + Math.min(200, result.length - at));
    const piece = result.slice(at, at + length);
    const splice = SPLICES[prng.below(SPLICES.length)]!;
    switch (prng.below(6)) {
      case 0:
        result = result.slice(0, at) + result.slice(at + length);
        break;
      case 1:
        result = result.slice(0, at) + splice + result.slice(at);
        break;
      case 2:
        result = result.slice(0, at) + piece.repeat(1 + prng.below(20)) + result.slice(at);
        break;
      case 3:
        result = result.slice(0, at) + splice.repeat(1 + prng.below(300)) + result.slice(at);
        break;
      case 4:
        result = result.slice(0, at) + String(prng.below(2 ** 31)) + result.slice(at + Math.min(length, 8));
        break;
      default:
        result = result.slice(0, at);
    }
  }
  return result;
}

function piecesOf(text: string): Piece[] {
  const found = classify(text);
  if (found.kind === 'skipped') return [];
  if (found.kind === 'manifest') {
    return [
      ...kubernetesPieces(found.kubernetes.map((tree) => ({ tree, file: 'f' }))),
      ...found.compose.flatMap((tree) => composePieces(tree, 'f')),
    ];
  }
  return found.readings.map((reading) => ({ reading, source: { kind: found.kind, name: 'f' }, place: '', name: null }));
}

function judge(text: string): ReturnType<typeof assess> {
  return assess(fleetOf(piecesOf(text), [], { advertised: null, pools: [] }), RULES);
}

/** Every number that the text holds, and products of two: vLLM tells blocks and their size. */
function numbersOf(text: string): ReadonlySet<number> {
  const plain = new Set<number>();
  for (const [digits] of text.matchAll(/(?:\d[\d,_]*(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?/gi)) {
    plain.add(Number(digits.replaceAll(/[,_]/g, '')));
    for (const part of digits.split(/[,_]/)) plain.add(Number(part));
  }
  return plain;
}

function isRead(value: number, numbers: ReadonlySet<number>): boolean {
  if (numbers.has(value)) return true;
  for (const one of numbers) {
    if (one <= 0) continue;
    // blocks × size − the null block; pages × page size; a suffix of 1000 or 1024; a pool parted among slots.
    if (numbers.has(value / one) || numbers.has(value / one + 1)) return true;
    if (value === one * 1000 || value === one * 1024) return true;
    if (one >= value && numbers.has(Math.floor(one / value))) return true;
  }
  return false;
}

/** Milliseconds of CPU so far: other programs share the cores. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function timed(text: string): number {
  const startMs = cpuMs();
  judge(text);
  return cpuMs() - startMs;
}

for (const [kind, bases] of Object.entries(KINDS)) {
  test(`mutated ${kind} crash nothing, hold nothing up, and pass nothing that was not read (seed ${SEED})`, () => {
    const prng = new Prng(SEED);
    let passes = 0;
    for (let i = 0; i < INPUTS; i++) {
      const text = mutated(bases[i % bases.length]!, prng);
      const startMs = cpuMs();
      const judged = judge(text);
      let tookMs = cpuMs() - startMs;
      for (let again = 0; again < RETRIES && tookMs > INPUT_MS_MAX; again++) tookMs = Math.min(tookMs, timed(text));
      assert.ok(tookMs <= INPUT_MS_MAX, `input ${i} took ${tookMs} ms: ${JSON.stringify(text.slice(0, 300))}`);
      for (const check of judged.checks) {
        assert.doesNotMatch(check.why, /the rule itself failed/, `input ${i}: ${check.id}: ${check.why}`);
        if (check.id !== 'capacity.pool-below-context' || check.status !== 'passed') continue;
        passes++;
        const node = judged.nodes.find(({ name }) => name === check.node)!;
        const numbers = numbersOf(text);
        for (const value of [node.pool, node.advertised]) {
          assert.ok(
            value !== null && isRead(value, numbers),
            `input ${i}: passed with ${value}, which is not in it: ${text
              .split('\n')
              .filter((l) => l.includes(String(value).slice(0, 6)))
              .join(' | ')
              .slice(0, 400)}`,
          );
        }
      }
    }
    assert.ok(passes >= 0);
  });
}

test('billions of laughs, deep nesting and runs of brackets are refused in words and in time', () => {
  const levels = Array.from({ length: 30 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`);
  const laughs = `apiVersion: v1\nkind: Pod\nl0: &l0 [lol]\n${levels.join('\n')}\nspec: {containers: *l30}\n`;
  const deep = `apiVersion: v1\nkind: Pod\nspec: ${'{a: '.repeat(5000)}1${'}'.repeat(5000)}\n`;
  const dashes = `apiVersion: v1\nkind: Pod\nspec:\n  ${'- '.repeat(3000)}x\n`;
  const loop = 'apiVersion: v1\nkind: Pod\nspec: &s\n  containers: *s\n';
  const anchors = `apiVersion: v1\nkind: Pod\na:\n${Array.from({ length: 5000 }, (_, i) => `  - &a${i} x\n  - *a${i}\n`).join('')}`;
  for (const text of [laughs, deep, dashes, loop, anchors, '['.repeat(1_000_000), '{"a":'.repeat(100_000)]) {
    const startMs = cpuMs();
    judge(text);
    assert.ok(cpuMs() - startMs < 2000, `took ${cpuMs() - startMs} ms: ${text.slice(0, 60)}`);
  }
});
