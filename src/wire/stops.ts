/**
 * Stop sequences over text that comes in pieces. One automaton a sequence (Knuth, Morris and Pratt), so that a character costs
 * a constant however the sequences are chosen, and so that the cut does not depend on where the pieces were cut.
 */
interface Automaton {
  readonly stop: string;
  /** failure[i]: characters of `stop` that still match when i matched and the next one did not. */
  readonly failure: readonly number[];
  /** How many characters of `stop` the text ends with. */
  matched: number;
}

export class StopMatcher {
  readonly #automata: Automaton[];
  /** What might be the start of a stop, and has not been let go. */
  #held = '';
  #hit = false;
  #met: string | null = null;

  constructor(stops: readonly string[]) {
    this.#automata = stops.map((stop) => ({ stop, failure: failureTable(stop), matched: 0 }));
  }

  /** Whether a stop was met; nothing more is let go then. */
  get hit(): boolean {
    return this.#hit;
  }

  /** The stop that was met. */
  get met(): string | null {
    return this.#met;
  }

  /** Takes a piece and gives what may leave: everything before a stop, and nothing that may still become one. */
  push(piece: string): string {
    if (this.#hit) return '';
    if (this.#automata.length === 0) return piece;
    const text = this.#held + piece;
    for (let at = this.#held.length; at < text.length; at++) {
      const stopLength = this.#advance(text.charCodeAt(at));
      if (stopLength === 0) continue;
      this.#hit = true;
      this.#met = text.slice(at + 1 - stopLength, at + 1);
      this.#held = '';
      return text.slice(0, at + 1 - stopLength);
    }
    let keep = 0;
    for (const automaton of this.#automata) keep = Math.max(keep, automaton.matched);
    this.#held = keep === 0 ? '' : text.slice(text.length - keep);
    return text.slice(0, text.length - keep);
  }

  /** What was held back, once no more comes. */
  flush(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }

  /** The length of the longest stop that ends with this character; 0: none. */
  #advance(code: number): number {
    let longest = 0;
    for (const automaton of this.#automata) {
      const { stop, failure } = automaton;
      let matched = automaton.matched;
      while (matched > 0 && stop.charCodeAt(matched) !== code) matched = failure[matched]!;
      if (stop.charCodeAt(matched) === code) matched++;
      automaton.matched = matched;
      if (matched === stop.length) longest = Math.max(longest, matched);
    }
    return longest;
  }
}

function failureTable(stop: string): number[] {
  const failure = [0, 0];
  for (let i = 1; i < stop.length; i++) {
    let matched = failure[i]!;
    while (matched > 0 && stop.charCodeAt(matched) !== stop.charCodeAt(i)) matched = failure[matched]!;
    failure.push(stop.charCodeAt(matched) === stop.charCodeAt(i) ? matched + 1 : 0);
  }
  return failure;
}
