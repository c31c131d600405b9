/**
 * What does a kept prefix save? Time to the first token of a prompt that was seen before, and of one that was not, alternated.
 *
 *   npm run build && node dist/bench/prefix.js
 *
 * The engine runs in this one thread. A miss is the same kind of prompt from another seed; figures are medians of the rounds.
 */
import { SystemClock } from '../src/base/clock.js';
import { Prng } from '../src/base/prng.js';
import { engineConfig } from '../src/engine/config.js';
import { InlineEngine } from '../src/engine/inline-engine.js';
import { encode } from '../src/tokenizer/bytes.js';

const ROUNDS = 7;
const LETTERS = 'abcdefghijklmnopqrstuvwxyz ';
const clock = new SystemClock();
const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const engine = new InlineEngine(engineConfig({ prefillPool: 65_536, decodePool: 65_536 }), clock);
const chance = new Prng(1);

const text = (tokens: number): string =>
  Array.from({ length: tokens }, () => LETTERS[chance.below(LETTERS.length)]).join('');

/** Milliseconds from submission to the first token, and the tokens that were found. */
function firstTokenMs(prompt: string): { readonly ms: number; readonly cached: number } {
  const begin = clock.nowMs();
  let ms = 0;
  let cached = 0;
  let isReleased = false;
  engine.coordinator.submit(
    {
      tenant: 1,
      salt: 'a'.repeat(64),
      prompt: encode(prompt),
      maxTokens: 2,
      temperature: 0,
      seed: 1,
      room: null,
      handle: null,
    },
    {
      started: (counts) => {
        cached = counts?.cachedTokens ?? 0;
      },
      token: () => {
        ms ||= clock.nowMs() - begin;
      },
      end: () => {},
      released: () => {
        isReleased = true;
      },
    },
  );
  engine.runUntil(() => isReleased);
  return { ms, cached };
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

for (const tokens of [256, 1024, 2048]) {
  const known = text(tokens);
  firstTokenMs(known);
  const hits: number[] = [];
  const misses: number[] = [];
  let cached = 0;
  for (let round = 0; round < ROUNDS; round++) {
    misses.push(firstTokenMs(text(tokens)).ms);
    const hit = firstTokenMs(known);
    hits.push(hit.ms);
    cached = hit.cached;
  }
  const [hit, miss] = [median(hits), median(misses)];
  print(
    `${tokens} tokens: miss ${miss.toFixed(1)} ms, hit ${hit.toFixed(1)} ms (${cached} tokens kept), ${(miss / hit).toFixed(1)} times faster`,
  );
}
await engine.coordinator.close();
