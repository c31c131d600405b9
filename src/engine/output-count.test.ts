/**
 * Goal: an answer whose length decode does not confirm never ends as a whole answer. Method: the engine in one thread, with messages of
 * decode to the gateway lost or changed on their way.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from '../base/clock.js';
import { ALL_GUARDS, guardBit } from '../handoff/guards.js';
import { engineConfig } from './config.js';
import { ask } from './harness.test.help.js';
import { InlineEngine } from './inline-engine.js';
import type { ToGateway } from './traffic.js';

const MAX_TOKENS = 8;
const SIZES = { context: 1024, prefillPool: 2048, decodePool: 4096, runningMax: 4 };

/** The end of one request whose messages to the gateway pass through `change`; null: lost. */
function endWith(change: (message: ToGateway) => ToGateway | null, options: Parameters<typeof engineConfig>[0] = {}) {
  const engine = new InlineEngine(engineConfig({ ...SIZES, ...options }), new ManualClock());
  const receive = engine.coordinator.receive.bind(engine.coordinator);
  engine.coordinator.receive = (message) => {
    const changed = change(message);
    if (changed !== null) receive(changed);
  };
  const asked = ask(engine.coordinator, 'one two three, one two ', { maxTokens: MAX_TOKENS, ignoreEos: true });
  engine.runUntil(() => asked.isReleased);
  return { end: asked.ended, stats: engine.coordinator.stats() };
}

function withoutFirstToken(): (message: ToGateway) => ToGateway | null {
  let isLost = false;
  return (message) => {
    if (message.kind !== 'token' || isLost) return message;
    isLost = true;
    return null;
  };
}

const CHANGES: readonly (readonly [
  what: string,
  change: () => (message: ToGateway) => ToGateway | null,
  got: string,
])[] = [
  ['a token that was lost', withoutFirstToken, '7 tokens that were streamed, got 8'],
  [
    'an end without a count',
    () => (message) =>
      message.kind === 'protocol' && message.payload?.kind === 'output-end' ? { ...message, payload: null } : message,
    '8 tokens that were streamed, got no count',
  ],
  [
    'an end with another count',
    () => (message) =>
      message.kind === 'protocol' && message.payload?.kind === 'output-end'
        ? { ...message, payload: { ...message.payload, completionTokens: 0 } }
        : message,
    '8 tokens that were streamed, got 0',
  ],
];

describe('decode says how many tokens it sent', () => {
  test('and an answer of that length is whole', () => {
    const { end, stats } = endWith((message) => message);
    assert.deepEqual([end?.outcome, end?.completionTokens], ['finished', MAX_TOKENS]);
    assert.equal(stats.guardHits.usage, 0);
  });

  for (const [what, change, got] of CHANGES) {
    test(`${what} ends the request with an error, counted and found, and nothing stays held`, () => {
      const { end, stats } = endWith(change());
      assert.deepEqual([end?.outcome, end?.error?.code, end?.guard], ['failed', 'verification_failed', 'usage']);
      assert.equal(stats.guardHits.usage, 1);
      assert.ok(stats.findings.some(({ guard, words }) => guard === 'usage' && words.includes(got)));
      assert.equal(stats.decodePages.leased + stats.decodePages.draining, 0);
    });
  }

  test('with the guard off it passes as whole', () => {
    const { end } = endWith(withoutFirstToken(), { guards: ALL_GUARDS & ~guardBit('usage') });
    assert.equal(end?.outcome, 'finished');
  });
});
