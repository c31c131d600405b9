/** Bytes a CPU second: ours beside the libraries in Rust and in JavaScript. */
import { Tokenizer as JavaScriptTokenizer } from '@huggingface/tokenizers';
import type { ByteLevelTokenizer } from '../../src/tokenizer/text-tokenizer.js';
import type { RustTokenizer } from './packages.js';

const ROUNDS = 5;
/** A prompt of some 75,000 tokens. */
const PROMPT_CHARACTERS = 290_000;
/** The libraries take seconds for the whole corpus, and are no faster over it. */
const LIBRARY_CHARACTERS = 500_000;

export interface SpeedRow {
  readonly vocabulary: string;
  readonly how: string;
  /** Median of the rounds. */
  readonly megabytesPerS: number;
}

interface Pair {
  readonly ours: ByteLevelTokenizer;
  readonly rust: RustTokenizer;
}

/** Process CPU: the machine may be shared, and the library in Rust works on a thread of its own. */
async function rate(texts: readonly string[], count: (text: string) => Promise<number> | number): Promise<number> {
  const before = process.cpuUsage();
  for (const text of texts) await count(text);
  const { user, system } = process.cpuUsage(before);
  return texts.reduce((bytes, text) => bytes + Buffer.byteLength(text), 0) / (user + system);
}

export async function speedOf(
  vocabulary: string,
  corpus: string,
  { ours, rust }: Pair,
  tokenizer: object,
  config: object,
): Promise<SpeedRow[]> {
  const javaScript = new JavaScriptTokenizer(tokenizer, config);
  const prompts: string[] = [];
  for (let at = 0; at + PROMPT_CHARACTERS <= corpus.length; at += PROMPT_CHARACTERS) {
    prompts.push(corpus.slice(at, at + PROMPT_CHARACTERS));
  }
  const variants: [string, () => Promise<number>][] = [
    ['ours, the corpus in one call', () => rate([corpus], (text) => ours.count(text, false))],
    ['ours, in prompts of 300 KB', () => rate(prompts, (text) => ours.count(text, false))],
    [
      'tokenizers 0.23.2 (Rust)',
      () =>
        rate([corpus.slice(0, LIBRARY_CHARACTERS)], async (text) =>
          (await rust.encode(text, null, { addSpecialTokens: false })).getLength(),
        ),
    ],
    [
      '@huggingface/tokenizers 0.2.0 (JavaScript)',
      () =>
        rate(
          [corpus.slice(0, LIBRARY_CHARACTERS)],
          (text) => javaScript.encode(text, { add_special_tokens: false }).ids.length,
        ),
    ],
  ];
  const rates = variants.map((): number[] => []);
  // The first round warms up and is not counted.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [index, [, run]] of variants.entries()) {
      const measured = await run();
      if (round > 0) rates[index]!.push(measured);
    }
  }
  return variants.map(([how], index) => {
    const sorted = rates[index]!.sort((a, b) => a - b);
    return { vocabulary, how, megabytesPerS: sorted[ROUNDS >> 1]! };
  });
}

export function table(rows: readonly SpeedRow[]): string {
  const lines = rows.map(
    ({ vocabulary, how, megabytesPerS }) =>
      `${vocabulary.padEnd(12)} ${how.padEnd(44)} ${megabytesPerS.toFixed(1).padStart(6)} MB/s`,
  );
  return ['', `medians of ${ROUNDS} rounds, alternated, bytes by CPU time of the process`, ...lines, ''].join('\n');
}
