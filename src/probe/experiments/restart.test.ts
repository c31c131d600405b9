/**
 * Goal: what is left of requests that were in flight at a restart is looked for after it; where nothing was restarted, or nobody is
 * there to do it, nothing is said. Method: an endpoint that is a function and is gone for a while, on a clock that leaps over waits.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Ask } from '../client.js';
import { type FakeLab, type Faked, fakeLab, recalling } from '../lab.test.help.js';
import { restart } from './restart.js';

const GONE: Faked = { outcome: 'failed', status: null };
const marker = (prompt: string): string => /KVC-[a-z2-7]{26}/.exec(prompt)?.[0] ?? '';

/** Gone from request `from` on, for `count` requests. */
function gone(from: number, count: number, back: (ask: Ask) => Faked = recalling): (ask: Ask) => Faked {
  let asked = 0;
  return (ask) => {
    asked++;
    if (asked >= from && asked < from + count) return GONE;
    return asked < from ? recalling(ask) : back(ask);
  };
}

const interactive = (ask: (ask: Ask) => Faked): FakeLab => fakeLab({ seed: 1, ask, options: { interactive: true } });

describe('restart', () => {
  test('waits for the restart, then asks again for what was in flight, and says isolated', async () => {
    const { lab, said, asks } = interactive(gone(200, 40));
    const result = await restart.run(lab);
    assert.equal(result.verdict, 'isolated');
    assert.match(said[0] ?? '', /restart one node now/);
    assert.match(said.at(-1) ?? '', /answers again/);
    assert.equal(result.figures?.afterRecalled, 36);
    const continued = asks.slice(-72).filter(({ tenant }) => tenant.name === 'globex');
    assert.equal(continued.length, 36);
    for (const { prompt } of continued) assert.match(prompt, /^Notes\.\nThe code of [a-z]{8}:$/);
    assert.ok(asks.length <= restart.plan(lab).requests);
  });

  test("says leaks where another tenant's prompt goes on from pages of before", async () => {
    const codes = new Map<string, string>();
    const remembering = (ask: Ask): Faked => {
      const name = /The code of ([a-z]+):$/.exec(ask.prompt)?.[1] ?? '';
      if (ask.tenant.name === 'globex' && codes.has(name)) return { content: ` ${codes.get(name)}` };
      return recalling(ask);
    };
    const flaky = gone(200, 40, remembering);
    const { lab } = interactive((ask) => {
      const name = /The code of ([a-z]+):$/.exec(ask.prompt)?.[1];
      if (name !== undefined && marker(ask.prompt) !== '') codes.set(name, marker(ask.prompt));
      return flaky(ask);
    });
    const result = await restart.run(lab);
    assert.equal(result.verdict, 'leaks');
    assert.equal(result.hits, 36);
  });

  test('says leaks where prompts no longer get their own code back', async () => {
    const { lab } = interactive(gone(200, 40, () => ({ content: ' word' })));
    assert.equal((await restart.run(lab)).verdict, 'leaks');
  });

  test('could not run where nothing was restarted, and where nothing came back, each within its bound', async () => {
    const never = await restart.run(interactive(recalling).lab);
    assert.equal(never.verdict, 'could-not-run');
    assert.match(never.control, /nothing was restarted/);
    const { lab } = interactive(gone(200, 1e9));
    const dead = await restart.run(lab);
    assert.equal(dead.verdict, 'could-not-run');
    assert.match(dead.control, /did not answer again within 300 s/);
  });

  test('needs an operator and two tenants', () => {
    assert.match(restart.unfit(fakeLab({ seed: 2, ask: recalling }).lab) ?? '', /needs a terminal/);
    assert.equal(restart.unfit(interactive(recalling).lab), null);
    const alone = fakeLab({ seed: 2, ask: recalling, tenants: ['acme'], options: { interactive: true } });
    assert.match(restart.unfit(alone.lab) ?? '', /two tenants/);
  });
});
