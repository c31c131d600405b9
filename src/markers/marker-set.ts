import type { MarkerHit, MarkerIndex } from './marker-index.js';

/** A scanner for one stream of text, over one index or several. */
export interface TextScanner {
  /** Characters that have come, in UTF-16 units. */
  readonly length: number;
  /** The last characters that have come: 29, or all of fewer. */
  readonly tail: string;
  /** How many of the last characters may, with what comes next, become part of a hit. */
  readonly holdBack: number;
  /** The hits that the chunk completes or makes longer. */
  scan(chunk: string): MarkerHit[];
}

/**
 * Markers in two indexes: those that stay, and the few that come and go, so that a new one costs an index of a few and not of all.
 */
export class MarkerSet {
  readonly #indexes: readonly MarkerIndex[];

  constructor(indexes: readonly MarkerIndex[]) {
    this.#indexes = indexes.filter(({ size }) => size > 0);
  }

  get isEmpty(): boolean {
    return this.#indexes.length === 0;
  }

  scanner(): TextScanner {
    const [first, ...others] = this.#indexes.map((index) => index.scanner());
    return first === undefined ? NO_SCANNER : others.length === 0 ? first : new JointScanner([first, ...others]);
  }

  /** Every hit in a whole text. */
  scanText(text: string): MarkerHit[] {
    return this.#indexes.flatMap((index) => index.scanText(text));
  }
}

const NO_SCANNER: TextScanner = { length: 0, tail: '', holdBack: 0, scan: () => [] };

class JointScanner implements TextScanner {
  readonly #scanners: readonly TextScanner[];

  /** At least one. */
  constructor(scanners: readonly TextScanner[]) {
    this.#scanners = scanners;
  }

  get length(): number {
    return this.#scanners[0]!.length;
  }

  get tail(): string {
    return this.#scanners[0]!.tail;
  }

  get holdBack(): number {
    let most = 0;
    for (const { holdBack } of this.#scanners) most = Math.max(most, holdBack);
    return most;
  }

  scan(chunk: string): MarkerHit[] {
    let hits: MarkerHit[] = [];
    for (const scanner of this.#scanners) {
      const found = scanner.scan(chunk);
      if (found.length > 0) hits = hits.length === 0 ? found : [...hits, ...found];
    }
    return hits;
  }
}
