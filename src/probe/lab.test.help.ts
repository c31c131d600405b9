/** A lab for the tests of experiments: its endpoint is a function, its clock leaps over every wait, its record is kept in memory. */
import { ManualClock, type Timer } from '../base/clock.js';
import { Prng } from '../base/prng.js';
import type { Answer } from './answer.js';
import { Budget } from './budget.js';
import type { Ask, PlainAsk, ProbeClient } from './client.js';
import type { JournalRecord } from './journal.js';
import { type Knowledge, Lab, type LabOptions } from './lab.js';
import { MarkerBook } from './scan.js';

/** What an endpoint answers; what is left out is that of a whole answer with nothing in it. */
export type Faked = Partial<
  Pick<Answer, 'outcome' | 'status' | 'firstByteMs' | 'content' | 'usage' | 'finishReason' | 'retryAfterS' | 'error'>
>;

export interface FakeOptions {
  readonly seed: number;
  readonly ask: (ask: Ask) => Faked;
  readonly plain?: (ask: PlainAsk) => Faked;
  readonly tenants?: readonly string[];
  readonly knowledge?: Partial<Knowledge>;
  readonly options?: Partial<LabOptions>;
}

export interface FakeLab {
  readonly lab: Lab;
  readonly asks: readonly Ask[];
  readonly records: readonly JournalRecord[];
  readonly said: readonly string[];
}

/** Whoever waits is woken as soon as others have had their turn, and the time has passed. */
class LeapingClock extends ManualClock {
  override after(delayMs: number, fn: () => void): Timer {
    const timer = super.after(delayMs, fn);
    queueMicrotask(() => this.advance(delayMs));
    return timer;
  }
}

const EVEN: Knowledge = {
  advertised: 4096,
  advertisedFrom: '--advertised',
  pool: null,
  acceptLimit: null,
  engine: null,
  engineVersion: null,
  ruler: { filler: 'a', overhead: (make) => Promise.resolve(make(0).length) },
  codeCharactersPerToken: 1,
  streams: true,
  smallMs: 5,
  nodes: [],
};

export function fakeLab({ seed, ask, plain, tenants = ['acme', 'globex'], knowledge, options }: FakeOptions): FakeLab {
  const asks: Ask[] = [];
  const records: JournalRecord[] = [];
  const said: string[] = [];
  const clock = new LeapingClock();
  const client = {
    sent: 0,
    ask(each: Ask): Promise<Answer> {
      asks.push(each);
      return Promise.resolve(whole(++this.sent, each.tenant.name, clock, ask(each)));
    },
    plain(each: PlainAsk): Promise<Answer> {
      return Promise.resolve(whole(++this.sent, each.tenant?.name ?? '', clock, plain?.(each) ?? {}));
    },
  };
  const lab = new Lab({
    experiment: 'test',
    target: {
      origin: new URL('http://127.0.0.1'),
      tenants: tenants.map((name) => ({ name, key: null })),
      model: 'lab',
      route: 'completions',
    },
    knowledge: { ...EVEN, ...knowledge },
    // The class has private parts, and a lab uses none but these.
    client: client as unknown as ProbeClient,
    budget: new Budget({ requests: 100_000, tokens: 1e9, together: 32, durationMs: 1e9 }, () => clock.nowMs()),
    journal: { write: (record) => records.push(record), close: () => {} },
    markers: new MarkerBook(new Uint8Array(32).fill(7), tenants),
    clock,
    chance: new Prng(seed),
    startMs: 0,
    keepText: false,
    bound: 0.05,
    allowDestructive: false,
    say: (line) => said.push(line),
    ...options,
  });
  return { lab, asks, records, said };
}

function whole(count: number, tenant: string, clock: ManualClock, faked: Faked): Answer {
  const { content = '' } = faked;
  return {
    id: `q-${count}`,
    tenant,
    outcome: 'answered',
    status: 200,
    sentMs: clock.nowMs(),
    firstByteMs: 1,
    firstTextMs: 1,
    endMs: clock.nowMs(),
    strings: new Map([['choices.*.text', content]]),
    usage: null,
    finishReason: 'length',
    error: null,
    retryAfterS: null,
    models: null,
    ...faked,
    content,
  };
}

/** Answers a prompt that ends by asking for a code as a model does that reads it: with that code, or with a word where none is stated. */
export function recalling({ prompt, maxTokens }: Ask): Faked {
  const name = /The code of ([a-z]+):$/.exec(prompt)?.[1];
  const code = name === undefined ? undefined : new RegExp(`The code of ${name}: ([^.\\s]+)\\.`).exec(prompt)?.[1];
  const usage = { promptTokens: prompt.length, completionTokens: 1, cachedTokens: null };
  return { content: ` ${code ?? 'word'}`.slice(0, maxTokens), usage };
}
