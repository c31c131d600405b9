/** Seeded prompts of several kinds, as token ids. */
import { Prng } from '../../src/base/prng.js';
import { filler, newMarker, recallPrompt, word } from '../../src/model/fixture.test.help.js';
import { encode, renderChat } from '../../src/tokenizer/bytes.js';

export interface OraclePrompt {
  readonly kind: string;
  readonly ids: Int32Array;
}

type Maker = (chance: Prng, seed: number) => Int32Array;

const KINDS: readonly (readonly [string, Maker])[] = [
  ['a marker asked for, 200 to 4,000 tokens', (_chance, seed) => recallPrompt(seed).ids],
  ['a marker asked for, short', (chance) => encode(`${filler(chance, chance.below(60))}${asked(chance)}`)],
  ['two markers asked for in turn', (chance) => encode(`${asked(chance)}\n${asked(chance)}`)],
  ['a chat', (chance) => encode(chat(chance))],
  ['a repeated passage, cut anywhere', (chance) => repeated(chance, (length) => encode(filler(chance, length)))],
  ['repeated random tokens of all ids', (chance) => repeated(chance, (length) => randomIds(chance, length, 257))],
  ['text that repeats nothing on purpose', (chance) => encode(filler(chance, chance.between(1, 800)))],
  ['random bytes', (chance) => randomIds(chance, chance.between(1, 400), 256)],
];

/** Kinds in turn, so that every stretch of seeds has all of them. */
export function oraclePrompt(seed: number): OraclePrompt {
  const [kind, make] = KINDS[seed % KINDS.length]!;
  return { kind, ids: make(new Prng(seed), seed) };
}

function asked(chance: Prng): string {
  const cue = ` the code of ${word(chance)}: `;
  return `${cue}${newMarker(chance)} ${filler(chance, chance.between(1, 300))}${cue}`;
}

function chat(chance: Prng): string {
  const name = word(chance);
  return renderChat([
    { role: 'system', content: filler(chance, chance.between(10, 200)) },
    { role: 'user', content: `my key is ${newMarker(chance)}, remember it as ${name}` },
    { role: 'assistant', content: filler(chance, chance.between(10, 200)) },
    { role: 'user', content: `${filler(chance, chance.between(10, 200))} my key is ` },
  ]);
}

/** A passage, something else, and the passage again up to somewhere in it. */
function repeated(chance: Prng, make: (length: number) => Int32Array): Int32Array {
  const passage = make(chance.between(60, 400));
  const between = make(chance.between(1, 300));
  const again = passage.subarray(0, chance.between(10, passage.length - 40));
  return Int32Array.from([...passage, ...between, ...again]);
}

/** Ids below `below`, but for the end of an answer. */
function randomIds(chance: Prng, length: number, below: number): Int32Array {
  return Int32Array.from({ length }, () => chance.below(below));
}
