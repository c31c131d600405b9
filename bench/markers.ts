/**
 * How fast is text searched for 10,000 live markers? Ratio: against `indexOf` of the prefix alone, which finds whole markers
 * only. Run: node dist/bench/markers.js
 */
import { SystemClock } from '../src/base/clock.js';
import { Prng } from '../src/base/prng.js';
import { enumerateMarkers, MARKER_ALPHABET } from '../src/markers/marker.js';
import { MarkerIndex } from '../src/markers/marker-index.js';

const CHARACTERS = 4_000_000;
const ROUNDS = 7;
const clock = new SystemClock();
const prng = new Prng(1);

const LETTERS = 'etaoinshrdlucmfwypvbgk';
/** Words of 2 to 9 letters with spaces and full stops: what models write. */
function prose(): string {
  const words: string[] = [];
  for (let length = 0; length < CHARACTERS; length += words.at(-1)!.length + 1) {
    words.push(Array.from({ length: prng.between(2, 9) }, () => prng.pick(LETTERS.split(''))).join(''));
  }
  return Buffer.from(words.join(' ')).toString('latin1').slice(0, CHARACTERS);
}
/** The worst case: nothing but the markers' own letters. */
function dense(): string {
  const bytes = Buffer.alloc(CHARACTERS);
  for (let i = 0; i < CHARACTERS; i++) bytes[i] = MARKER_ALPHABET.charCodeAt(prng.below(32));
  return bytes.toString('latin1');
}

/** Median MB/s of ROUNDS passes in chunks. */
function rate(text: string, chunk: number, newPass: () => (chunk: string) => void): number {
  const chunks: string[] = [];
  for (let at = 0; at < text.length; at += chunk) chunks.push(text.slice(at, at + chunk));
  const rates: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const pass = newPass();
    const startMs = clock.nowMs();
    for (const piece of chunks) pass(piece);
    rates.push(text.length / 1000 / (clock.nowMs() - startMs));
  }
  return rates.sort((a, b) => a - b)[ROUNDS >> 1]!;
}

const owners = Array.from({ length: 1000 }, (_, i) => `tenant-${i}`);
const startMs = clock.nowMs();
const markers = enumerateMarkers(Buffer.alloc(32, 1), owners, ['2026-11'], 10);
const madeMs = clock.nowMs();
const index = new MarkerIndex(markers);
const builtMs = clock.nowMs();
process.stdout.write(`10,000 markers: made in ${(madeMs - startMs).toFixed(0)} ms, `);
process.stdout.write(`indexed in ${(builtMs - madeMs).toFixed(0)} ms\n`);
let found = 0;
for (const [name, text] of [
  ['prose', prose()],
  ['dense', dense()],
] as const) {
  for (const chunk of [65_536, 200, 4]) {
    const plain = rate(text, chunk, () => (piece) => {
      found += piece.indexOf('KVC-') + 1;
    });
    const scan = rate(text, chunk, () => {
      const scanner = index.scanner();
      return (piece) => {
        found += scanner.scan(piece).length;
      };
    });
    const guard = rate(text, chunk, () => {
      const scanner = index.scanner();
      return (piece) => {
        found += scanner.scan(piece).length + (scanner.holdBack >> 8);
      };
    });
    const ratio = (scan / plain).toFixed(3);
    process.stdout.write(
      `${name}, chunks of ${chunk}: scan ${scan.toFixed(0)} MB/s, with hold back ${guard.toFixed(0)} MB/s, ` +
        `indexOf of the prefix ${plain.toFixed(0)} MB/s, ratio ${ratio}\n`,
    );
  }
}
if (found > 0) process.stdout.write(`unexpected hits: ${found}\n`);
