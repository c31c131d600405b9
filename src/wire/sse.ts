/**
 * Reads server-sent events from chunks cut anywhere (WHATWG HTML, 9.2.5 and 9.2.6). Only what engines send matters here:
 * the `data` of each event; `event`, `id` and `retry` are skipped, comments too.
 */

/** Characters of one event that is still open. An engine that sends more without a blank line is not speaking SSE. */
export const SSE_EVENT_CHARACTERS_MAX: number = 4 * 1024 * 1024;

export class SseOverflow extends Error {
  override readonly name = 'SseOverflow';
}

export class SseReader {
  readonly #charactersMax: number;
  readonly #onData: (data: string) => void;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: false });
  /** Pieces of the line that is still open; joined once, so that a long line costs its length and not its square. */
  #open: string[] = [];
  #openCharacters = 0;
  #data: string[] = [];
  #dataCharacters = 0;
  #afterCr = false;

  /** `onData` gets the data of each complete event, lines joined by a line feed. Throws SseOverflow out of `push`. */
  constructor(onData: (data: string) => void, charactersMax: number = SSE_EVENT_CHARACTERS_MAX) {
    this.#onData = onData;
    this.#charactersMax = charactersMax;
  }

  /** Whether an event is open: at the end of a stream it was cut. */
  get cut(): boolean {
    return this.#openCharacters > 0 || this.#data.length > 0;
  }

  push(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    let from = 0;
    if (this.#afterCr && text.length > 0) {
      // CR LF is one line end, also when it was cut between the two.
      if (text.charCodeAt(0) === 10) from = 1;
      this.#afterCr = false;
    }
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code !== 10 && code !== 13) continue;
      this.#hold(text.slice(from, at));
      this.#line(this.#takeOpen());
      if (code === 13) {
        if (at + 1 === text.length) this.#afterCr = true;
        else if (text.charCodeAt(at + 1) === 10) at++;
      }
      from = at + 1;
    }
    this.#hold(text.slice(from));
  }

  #hold(piece: string): void {
    if (piece.length === 0) return;
    this.#openCharacters += piece.length;
    if (this.#openCharacters + this.#dataCharacters > this.#charactersMax) {
      throw new SseOverflow(`Expected an event of at most ${this.#charactersMax} characters, and it went on.`);
    }
    this.#open.push(piece);
  }

  #takeOpen(): string {
    const line = this.#open.length === 1 ? this.#open[0]! : this.#open.join('');
    this.#open = [];
    this.#openCharacters = 0;
    return line;
  }

  #line(line: string): void {
    if (line === '') {
      if (this.#data.length === 0) return;
      const data = this.#data.join('\n');
      this.#data = [];
      this.#dataCharacters = 0;
      this.#onData(data);
      return;
    }
    if (line === 'data') this.#take('');
    else if (line.startsWith('data:')) this.#take(line.slice(line.charCodeAt(5) === 32 ? 6 : 5));
  }

  #take(value: string): void {
    this.#data.push(value);
    this.#dataCharacters += value.length + 1;
    if (this.#dataCharacters > this.#charactersMax) {
      throw new SseOverflow(`Expected an event of at most ${this.#charactersMax} characters, and it went on.`);
    }
  }
}
