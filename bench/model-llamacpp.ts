/**
 * How fast is the engine's model against llama.cpp on the same GGUF with one thread, and against plain TypeScript loops?
 * Prefill and decode, one stream and eight; CPU time of the process, sides alternated, medians of 5 rounds after a warm-up.
 *
 * Two models of one shape: the lab model, most of whose weights are zero (our kernels leave blocks of zeros out, llama.cpp
 * does not look), and a dense one, in which nothing can be left out. llama.cpp is called at its binding, without the sampler
 * and the scheduling of its package, in two set-ups: as it comes (KV in float16), and with KV in float32 as ours.
 *
 *   npm run build && node dist/bench/model-llamacpp.js
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Prng } from '../src/base/prng.js';
import type { ModelWeights } from '../src/model/config.js';
import { ggufFile } from '../src/model/export/gguf.js';
import { denseWeights, newRole } from '../src/model/fixture.test.help.js';
import { LAB_CONFIG, loadLabWeights } from '../src/model/lab-weights.js';
import type { KernelsName } from '../src/tensor/contract.js';
import { installPackages, type Llama, type LlamaContext, llamaVersion, loadLlama } from '../test/oracle/packages.js';

const ROUNDS = 5;
const STREAMS_MAX = 8;
const CHUNK_TOKENS = 256;
/** Tokens of context before the decode steps that are measured. */
const CONTEXT_TOKENS = 1024;
const CONTEXT_TOKENS_MAX = 2048;
/** Decode steps of a measurement, and of one with the plain loops, which take milliseconds each. */
const STEPS = 64;
const STEPS_PLAIN = 8;
/** Tokens prefilled in a measurement, of one stream, and of each of eight. */
const PREFILL_TOKENS = { one: 256, eight: 64 } as const;
const FIRST_LETTER = 97;

type Streams = 1 | 8;

/** One contestant: prefills from an empty cache, or decodes from CONTEXT_TOKENS on. */
interface Side {
  readonly name: string;
  readonly steps: number;
  prepare(streams: Streams): Promise<void>;
  prefill(streams: Streams, tokens: number): Promise<void>;
  decode(streams: Streams, steps: number): Promise<void>;
}

const chance = new Prng(1);
const ids = Int32Array.from({ length: CONTEXT_TOKENS_MAX }, () => FIRST_LETTER + chance.below(26));

function ourSide(name: string, weights: ModelWeights, kernels: KernelsName): Side {
  const streamPages = CONTEXT_TOKENS_MAX / 16;
  const { model } = newRole({ weights, kernels, pages: STREAMS_MAX * streamPages });
  const pages = Array.from({ length: STREAMS_MAX }, (_, stream) =>
    Int32Array.from({ length: streamPages }, (_, page) => stream * streamPages + page),
  );
  const prefill = (streams: number, tokens: number): Promise<void> => {
    for (let stream = 0; stream < streams; stream++) {
      for (let at = 0; at < tokens; at += CHUNK_TOKENS) {
        const end = Math.min(tokens, at + CHUNK_TOKENS);
        model.prefill(ids.subarray(at, end), at, pages[stream]!, end === tokens);
      }
    }
    return Promise.resolve();
  };
  return {
    name,
    steps: kernels === 'wasm' ? STEPS : STEPS_PLAIN,
    // The plain loops cost the same over empty pages, and filling them would take a minute.
    prepare: (streams) => (kernels === 'wasm' ? prefill(streams, CONTEXT_TOKENS) : Promise.resolve()),
    prefill,
    decode: (streams, steps) => {
      for (let step = 0; step < steps; step++) {
        const position = CONTEXT_TOKENS + step;
        model.decode(pages.slice(0, streams).map((own) => ({ token: ids[position]!, position, pages: own })));
      }
      return Promise.resolve();
    },
  };
}

function llamaSide(name: string, { _ctx: context }: LlamaContext): Side {
  context.setThreads(1);
  const empty = (from: number): void => {
    for (let stream = 0; stream < STREAMS_MAX; stream++)
      context.removeTokenCellsFromSequence(stream, from, CONTEXT_TOKENS_MAX);
  };
  /** `tokens` of each stream from `position` on, with the logits of the last. */
  const evaluate = async (streams: number, position: number, tokens: number): Promise<void> => {
    context.initBatch(streams * tokens);
    const own = Uint32Array.from(ids.subarray(position, position + tokens));
    for (let stream = 0; stream < streams; stream++)
      context.addToBatch(stream, position, own, Uint32Array.of(tokens - 1));
    await context.decodeBatch();
  };
  return {
    name,
    steps: STEPS,
    async prepare(streams): Promise<void> {
      empty(0);
      for (let at = 0; at < CONTEXT_TOKENS; at += 64) await evaluate(streams, at, 64);
    },
    async prefill(streams, tokens): Promise<void> {
      empty(0);
      await evaluate(streams, 0, tokens);
    },
    async decode(streams, steps): Promise<void> {
      empty(CONTEXT_TOKENS);
      for (let step = 0; step < steps; step++) await evaluate(streams, CONTEXT_TOKENS + step, 1);
    },
  };
}

/** Tokens a second of CPU time, of all threads of this process. */
async function speed(tokens: number, work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (tokens / (user + system)) * 1e6;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

interface Row {
  readonly what: string;
  readonly streams: Streams;
}

const ROWS: readonly Row[] = [
  { what: 'prefill', streams: 1 },
  { what: 'prefill', streams: 8 },
  { what: 'decode', streams: 1 },
  { what: 'decode', streams: 8 },
];

async function once(side: Side, { what, streams }: Row): Promise<number> {
  if (what === 'decode') return speed(streams * side.steps, () => side.decode(streams, side.steps));
  const tokens = streams === 1 ? PREFILL_TOKENS.one : PREFILL_TOKENS.eight;
  return speed(streams * tokens, () => side.prefill(streams, tokens));
}

/** The median speed of each side, tokens a second. */
async function race(sides: readonly Side[], row: Row): Promise<number[]> {
  const speeds: number[][] = sides.map(() => []);
  if (row.what === 'decode') for (const side of sides) await side.prepare(row.streams);
  for (let round = -1; round < ROUNDS; round++) {
    const order = [...sides.keys()];
    if (round % 2 === 0) order.reverse();
    for (const index of order) {
      const value = await once(sides[index]!, row);
      if (round >= 0) speeds[index]!.push(value);
    }
  }
  return speeds.map(median);
}

const folder = mkdtempSync(join(tmpdir(), 'cofferdam-bench-'));
const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function compare(llama: Llama, title: string, weights: ModelWeights): Promise<void> {
  const file = ggufFile(`${title}.gguf`, { config: LAB_CONFIG, contextTokens: CONTEXT_TOKENS_MAX }, weights);
  const path = join(folder, file.name);
  writeFileSync(path, Buffer.concat([...file.chunks()]));
  const model = await llama.loadModel({ modelPath: path });
  const common = { contextSize: CONTEXT_TOKENS_MAX, sequences: STREAMS_MAX, batchSize: 512, threads: 1 };
  const asItComes = await model.createContext(common);
  const wide = await model.createContext({
    ...common,
    flashAttention: false,
    experimentalKvCacheKeyType: 'F32',
    experimentalKvCacheValueType: 'F32',
  });
  const sides = [
    ourSide('ours (WebAssembly)', weights, 'wasm'),
    llamaSide('llama.cpp, KV float16', asItComes),
    llamaSide('llama.cpp, KV float32', wide),
    ourSide('plain TypeScript', weights, 'reference'),
  ];
  say(`\n${title}: tokens a second of CPU\n${''.padEnd(20)}${sides.map(({ name }) => name.padStart(24)).join('')}`);
  for (const row of ROWS) {
    const speeds = await race(sides, row);
    const [ours, ...others] = speeds as [number, ...number[]];
    const cells = speeds.map((value) => value.toFixed(0).padStart(24)).join('');
    const ratios = others.map((value) => (ours / value).toFixed(2)).join(', ');
    say(
      `${`${row.what}, ${row.streams} stream${row.streams === 1 ? '' : 's'}`.padEnd(20)}${cells}   ours / each: ${ratios}`,
    );
  }
  await asItComes.dispose();
  await wide.dispose();
}

try {
  installPackages();
  say(`reference: ${llamaVersion()}`);
  const llama = await loadLlama();
  await compare(llama, 'the lab model', loadLabWeights());
  await compare(llama, 'a dense model of the same shape', denseWeights(3, LAB_CONFIG));
  await llama.dispose();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
