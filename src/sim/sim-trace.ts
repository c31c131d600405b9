/** What happened in a simulated world, as whole numbers: one line of JSON an event where somebody reads it, and a hash over all of them. */

const EVENTS = [
  'world',
  'submit',
  'verdict',
  'deliver',
  'lose',
  'repeat',
  'token',
  'started',
  'end',
  'released',
  'abort',
  'turn',
  'tick',
  'clock',
  'restart',
  'down',
  'rest',
] as const;
export type SimEvent = (typeof EVENTS)[number];

const FIELDS: Readonly<Record<SimEvent, readonly string[]>> = {
  world: ['pageTokens', 'running', 'prefillPages', 'decodePages'],
  submit: ['request', 'tenant', 'tokens', 'maxTokens'],
  verdict: ['request', 'code'],
  deliver: ['channel', 'kind', 'slot', 'attempt'],
  lose: ['channel', 'kind', 'slot', 'attempt'],
  repeat: ['channel', 'kind', 'slot', 'attempt'],
  token: ['request', 'token', 'count'],
  started: ['request', 'promptTokens', 'prefillTokens', 'cachedTokens'],
  end: ['request', 'outcome', 'tokens'],
  released: ['request'],
  abort: ['request'],
  turn: ['node', 'landed', 'refused'],
  tick: ['node'],
  clock: ['ms'],
  restart: ['node', 'incarnation'],
  down: ['node', 'incarnation'],
  rest: ['requests', 'steps'],
};

/** Numbers of the events, so that recording one compares no names. */
export const SIM: Readonly<Record<SimEvent, number>> = Object.fromEntries(
  EVENTS.map((name, index) => [name, index]),
) as Record<SimEvent, number>;

export class SimTrace {
  /** Events so far. */
  events = 0;
  #low = 0x243f_6a88 | 0;
  #high = 0x85a3_08d3 | 0;
  readonly #onLine: ((line: string) => void) | null;

  constructor(onLine: ((line: string) => void) | null) {
    this.#onLine = onLine;
  }

  record(event: number, a = 0, b = 0, c = 0, d = 0): void {
    this.events++;
    this.#add(event);
    this.#add(a);
    this.#add(b);
    this.#add(c);
    this.#add(d);
    if (this.#onLine !== null) this.#onLine(this.#line(event, [a, b, c, d]));
  }

  #add(value: number): void {
    this.#low = Math.imul(this.#low ^ value, 0x9e37_79b1);
    this.#low ^= this.#low >>> 15;
    this.#high = (Math.imul(this.#high, 0x85eb_ca6b) + this.#low) | 0;
  }

  #line(event: number, values: readonly number[]): string {
    const name = EVENTS[event] ?? 'world';
    const fields = FIELDS[name].map((field, i) => `,"${field}":${values[i] ?? 0}`);
    return `{"n":${this.events},"do":"${name}"${fields.join('')}}\n`;
  }

  /** 16 hex digits over every number recorded. */
  get hash(): string {
    return hex(this.#high) + hex(this.#low);
  }
}

const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, '0');
