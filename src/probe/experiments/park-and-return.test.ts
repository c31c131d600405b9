/**
 * Goal: a conversation that comes back to another's pages is told from one that finds its own, and from an endpoint that never
 * recalled anything. Method: endpoints that are functions: they read their prompts as a model would, with a mistake or without.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Ask } from '../client.js';
import { type Faked, fakeLab, recalling } from '../lab.test.help.js';
import { parkAndReturn } from './park-and-return.js';

const ROUNDS = 8;
const SESSIONS = 8;

/** The last marker that the other tenant sent stands where a conversation's own code stood, once that has rested. */
function mixedUp(most: number): (ask: Ask) => Faked {
  let theirs = '';
  let mixed = 0;
  const seen = new Map<string, number>();
  return (ask) => {
    const marker = /KVC-[a-z2-7]{26}/.exec(ask.prompt)?.[0] ?? '';
    const isSession = ask.prompt.startsWith('Notes of');
    const turn = (seen.get(marker) ?? 0) + 1;
    seen.set(marker, turn);
    if (!isSession) theirs = marker;
    if (!isSession || turn < 3 || mixed++ >= most) return recalling(ask);
    return { content: ` ${theirs}`, finishReason: 'length' };
  };
}

describe('park-and-return', () => {
  test('says isolated where conversations go on as their own, and bounds the rate', async () => {
    const { lab, asks } = fakeLab({ seed: 1, ask: recalling });
    const result = await parkAndReturn.run(lab);
    assert.equal(result.verdict, 'isolated');
    assert.ok(result.bound !== null && result.bound < 0.02);
    assert.deepEqual(
      [result.figures?.quietRecalled, result.figures?.afterRecalled],
      [ROUNDS * SESSIONS, ROUNDS * SESSIONS],
    );
    assert.ok(asks.length <= parkAndReturn.plan(lab).requests);
    assert.ok(asks.every(({ prompt, maxTokens }) => prompt.length + maxTokens <= 4096));
  });

  test('others send more than the pool while conversations rest, and own markers fill their prompts', async () => {
    const { lab, asks } = fakeLab({ seed: 2, ask: recalling, knowledge: { pool: 12_000 } });
    await parkAndReturn.run(lab);
    const firstRound = asks.slice(0, asks.length / ROUNDS);
    const others = firstRound.filter(({ tenant }) => tenant.name === 'globex');
    const tokens = others.reduce((sum, { prompt }) => sum + prompt.length, 0);
    assert.ok(tokens > 12_000, `${tokens} tokens`);
    for (const { prompt } of others) assert.ok(prompt.split('KVC-').length > 20);
  });

  test("says leaks at the other tenant's marker, and stops after a few", async () => {
    const { lab, asks } = fakeLab({ seed: 3, ask: mixedUp(3) });
    const result = await parkAndReturn.run(lab);
    assert.equal(result.verdict, 'leaks');
    assert.equal(result.hits, 3);
    assert.ok(asks.length < parkAndReturn.plan(lab).requests / 4);
    assert.equal(lab.hits[0]?.owner, 'globex');
  });

  test('says leaks where codes are lost after resting, though no marker is seen', async () => {
    const turns = new Map<string, number>();
    const losing = (ask: Ask): Faked => {
      const marker = /KVC-[a-z2-7]{26}/.exec(ask.prompt)?.[0] ?? '';
      turns.set(marker, (turns.get(marker) ?? 0) + 1);
      return turns.get(marker) === 3 && ask.prompt.startsWith('Notes of') ? { content: ' nothing' } : recalling(ask);
    };
    const result = await parkAndReturn.run(fakeLab({ seed: 4, ask: losing }).lab);
    assert.equal(result.verdict, 'leaks');
    assert.match(result.evidence[0] ?? '', /0 of 64 got it back .* the first without it is q-\d+/);
  });

  test('has no power where nothing recalls its code, or whoever returns is refused', async () => {
    const dull = await parkAndReturn.run(fakeLab({ seed: 5, ask: () => ({ content: ' word' }) }).lab);
    assert.equal(dull.verdict, 'no-power');
    const turns = new Map<string, number>();
    const refusing = (ask: Ask): Faked => {
      const marker = /KVC-[a-z2-7]{26}/.exec(ask.prompt)?.[0] ?? '';
      turns.set(marker, (turns.get(marker) ?? 0) + 1);
      return turns.get(marker) === 3 ? { outcome: 'refused', status: 503 } : recalling(ask);
    };
    const refused = await parkAndReturn.run(fakeLab({ seed: 6, ask: refusing }).lab);
    assert.equal(refused.verdict, 'no-power');
    assert.match(refused.evidence[0] ?? '', /64 errors/);
  });
});
