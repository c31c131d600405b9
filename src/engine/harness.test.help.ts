/** Requests to an engine in two threads, and what came of each: every sink checks that it hears one end and one release. */
import assert from 'node:assert/strict';
import { type Clock, SystemClock } from '../base/clock.js';
import type { Prng } from '../base/prng.js';
import { decode, encode } from '../tokenizer/bytes.js';
import type {
  EngineCounts,
  EngineEnd,
  EnginePort,
  EngineRequest,
  EngineRun,
  EngineSink,
  EngineStats,
} from '../handoff/engine-port.js';

export const clock: Clock = new SystemClock();

export interface Asked {
  readonly tokens: number[];
  counts: EngineCounts | null;
  ended: EngineEnd | null;
  isReleased: boolean;
  run: EngineRun;
  readonly whenEnded: Promise<EngineEnd>;
  readonly whenReleased: Promise<void>;
  text(): string;
}

export interface AskOptions extends Partial<EngineRequest> {
  /** A reader that never takes anything does not acknowledge. @default true */
  readonly reads?: boolean;
  readonly onToken?: (asked: Asked) => void;
}

export function ask(engine: EnginePort, text: string, options: AskOptions = {}): Asked {
  const { reads = true, onToken, ...request } = options;
  let end: (end: EngineEnd) => void = () => {};
  let release: () => void = () => {};
  const asked: Asked = {
    tokens: [],
    counts: null,
    ended: null,
    isReleased: false,
    run: { abort() {}, acknowledge() {} },
    whenEnded: new Promise((resolve) => {
      end = resolve;
    }),
    whenReleased: new Promise((resolve) => {
      release = resolve;
    }),
    text: () => decode(asked.tokens),
  };
  const sink: EngineSink = {
    started(counts) {
      assert.equal(asked.counts, null, 'a request starts once');
      asked.counts = counts ?? null;
    },
    token(id) {
      assert.equal(asked.ended, null, 'no token follows the end');
      asked.tokens.push(id);
      if (reads) asked.run.acknowledge(asked.tokens.length);
      onToken?.(asked);
    },
    end(ending) {
      assert.equal(asked.ended, null, 'a request ends once');
      asked.ended = ending;
      end(ending);
    },
    released() {
      assert.notEqual(asked.ended, null, 'a request is released after its end');
      assert.equal(asked.isReleased, false, 'a request is released once');
      asked.isReleased = true;
      release();
    },
  };
  asked.run = engine.submit(
    {
      tenant: 1,
      salt: '',
      prompt: encode(text),
      maxTokens: 32,
      temperature: 0,
      seed: 1,
      room: null,
      handle: null,
      ...request,
    },
    sink,
  );
  return asked;
}

export const CUE = ' the password of the day: ';

/** A prompt that states a marker among random words and asks for it, and the marker. */
export function recall(chance: Prng, length: number): { readonly prompt: string; readonly marker: string } {
  const letters = 'abcdefghijklmnopqrstuvwxyz234567';
  const pick = (count: number): string => Array.from({ length: count }, () => letters[chance.below(32)]).join('');
  const marker = `KVC-${pick(26)}`;
  const words = (count: number): string => {
    let text = '';
    while (text.length < count) text += `${pick(chance.between(2, 8))} `;
    return text.slice(0, count);
  };
  const rest = Math.max(0, length - 2 * CUE.length - marker.length - 1);
  const before = chance.below(rest + 1);
  return { prompt: `${words(before)}${CUE}${marker} ${words(rest - before)}${CUE}`, marker };
}

export function isIdle({ prefillPages, decodePages, running }: EngineStats): boolean {
  const holdsNothing = (pages: EngineStats['decodePages']): boolean => pages.leased + pages.draining === 0;
  return running === 0 && holdsNothing(prefillPages) && holdsNothing(decodePages);
}

export async function until(done: () => boolean, what: string, msMax = 5000): Promise<void> {
  const endMs = clock.nowMs() + msMax;
  while (!done()) {
    assert.ok(clock.nowMs() < endMs, `expected within ${msMax} ms that ${what}`);
    await new Promise<void>((resolve) => clock.after(5, resolve));
  }
}
