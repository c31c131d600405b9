import type { Answer } from './answer.js';

/**
 * Prompts of a known exact length, measured at the endpoint itself: a filler is looked for of which every further piece counts one
 * token, and what is around it is measured once with few pieces of filler. Nothing is assumed of the tokenizer.
 */
export interface Ruler {
  /** The piece of filler that counts one token, wherever it stands. */
  readonly filler: string;
  /** Tokens of a prompt that `make` builds with `pieces` of filler; measured with a small request, exact for any larger count. */
  overhead(make: (pieces: number) => string): Promise<number>;
}

/** Sends a prompt with one token of answer; resolves with what the endpoint counted, or null where it does not say. */
export type Measure = (prompt: string) => Promise<number | null>;

/** Most likely first: whole words with a space for byte-pair vocabularies, single letters for bytes. */
const FILLERS: readonly string[] = [' the', ' a', 'a', ' x', '.'];
const COUNTS = [8, 24, 57] as const;
const OVERHEAD_PIECES = 32;

export async function calibrate(measure: Measure): Promise<Ruler | null> {
  for (const filler of FILLERS) {
    const counted: (number | null)[] = [];
    for (const count of COUNTS) counted.push(await measure(`Read this.${filler.repeat(count)}`));
    const base = counted[0];
    if (base === null || base === undefined) return null;
    if (counted.every((tokens, i) => tokens !== null && tokens - base === COUNTS[i]! - COUNTS[0])) {
      return new MeasuredRuler(filler, measure);
    }
  }
  return null;
}

class MeasuredRuler implements Ruler {
  readonly filler: string;
  readonly #measure: Measure;

  constructor(filler: string, measure: Measure) {
    this.filler = filler;
    this.#measure = measure;
  }

  async overhead(make: (pieces: number) => string): Promise<number> {
    const counted = await this.#measure(make(OVERHEAD_PIECES));
    if (counted === null) throw new UnmeasuredPrompt();
    return counted - OVERHEAD_PIECES;
  }
}

/** The endpoint stopped saying how many tokens it read. */
export class UnmeasuredPrompt extends Error {
  override readonly name = 'UnmeasuredPrompt';
}

/** What the endpoint counted for a prompt; null where it does not say or did not answer. */
export function countedTokens(answer: Answer): number | null {
  return answer.outcome === 'answered' ? (answer.usage?.promptTokens ?? null) : null;
}
