/**
 * Goal: a context that is advertised and not read is found out, at which length and depth, and a whole one is said to be so. Method:
 * endpoints that are functions, which drop, refuse or mix up parts of what they are sent.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Ask } from '../client.js';
import { type Faked, fakeLab, recalling } from '../lab.test.help.js';
import { longContext } from './long-context.js';

const marker = (prompt: string, at: number): string => prompt.match(/KVC-[a-z2-7]{26}/g)?.at(at) ?? '';

describe('long-context', () => {
  test('fills the advertised context to its end, asks at every depth, and says isolated', async () => {
    const { lab, asks } = fakeLab({ seed: 1, ask: recalling });
    const result = await longContext.run(lab);
    assert.equal(result.verdict, 'isolated');
    assert.deepEqual(result.figures?.right, [22, 22, 22]);
    assert.deepEqual(result.figures?.asked, [22, 22, 22]);
    assert.ok(result.bound !== null && result.bound <= 0.05);
    const longest = Math.max(...asks.map(({ prompt, maxTokens }) => prompt.length + maxTokens));
    assert.ok(longest <= 4096 && longest >= 4096 - 32, `${longest} tokens`);
    assert.ok(asks.length <= longContext.plan(lab).requests);
  });

  test('asks for codes from the first token to the last, in even steps', async () => {
    const { lab, asks } = fakeLab({ seed: 2, ask: recalling });
    await longContext.run(lab);
    const places = asks.filter(({ tenant }) => tenant.name === 'acme').map(({ prompt }) => prompt.indexOf('KVC-'));
    assert.equal(places.length, 33);
    const longest = places.slice(22);
    const steps = longest.slice(1).map((place, i) => place - longest[i]!);
    assert.ok(Math.max(...steps) - Math.min(...steps) <= 1, steps.join(' '));
    assert.ok(longest[0]! < 40 && longest[10]! > 4032 - 100, longest.join(' '));
  });

  test('finds a context that is cut in silence, by the count and by what is forgotten', async () => {
    const window = 2048;
    const cutting = (ask: Ask): Faked => recalling({ ...ask, prompt: ask.prompt.slice(-window) });
    const counted = await longContext.run(fakeLab({ seed: 3, ask: cutting }).lab);
    assert.equal(counted.verdict, 'no-power');
    assert.match(counted.evidence.join('\n'), /4032 tokens: 22 truncated/);
    const lying = (ask: Ask): Faked => ({
      ...cutting(ask),
      usage: { promptTokens: ask.prompt.length, completionTokens: 1, cachedTokens: null },
    });
    const lied = await longContext.run(fakeLab({ seed: 4, ask: lying }).lab);
    assert.equal(lied.verdict, 'no-power');
    assert.match(lied.evidence.join('\n'), /4032 tokens: 10 right, 12 wrong \(at 0 %, 10 %, 20 %, 30 %, 40 %, 50 %;/);
    assert.match(lied.evidence.join('\n'), /2016 tokens: 22 right/);
  });

  test('forgives a model that loses a code now and then, not one that loses a place', async () => {
    let asked = 0;
    const model = (ask: Ask): Faked => (++asked % 7 === 0 ? { content: ' word' } : recalling(ask));
    const { lab, asks } = fakeLab({ seed: 8, ask: model });
    const result = await longContext.run(lab);
    assert.equal(result.verdict, 'isolated');
    assert.match(result.evidence[0] ?? '', /22 right \(\d at another try\)/);
    assert.ok(asks.length > 66 && asks.length <= longContext.plan(lab).requests);
    const hole = (ask: Ask): Faked => (ask.prompt.indexOf('KVC-') < 40 ? { content: ' word' } : recalling(ask));
    const lost = await longContext.run(fakeLab({ seed: 9, ask: hole }).lab);
    assert.equal(lost.verdict, 'no-power');
    assert.match(lost.evidence[0] ?? '', /20 right, 2 wrong \(at 0 %;/);
  });

  test("says leaks where the end of a long context holds the other tenant's", async () => {
    const last = new Map<string, string>();
    const mixing = (ask: Ask): Faked => {
      const theirs = last.get(ask.tenant.name === 'acme' ? 'globex' : 'acme');
      last.set(ask.tenant.name, marker(ask.prompt, 0));
      return ask.prompt.length > 4000 && theirs !== undefined ? { content: ` ${theirs}` } : recalling(ask);
    };
    const result = await longContext.run(fakeLab({ seed: 5, ask: mixing }).lab);
    assert.equal(result.verdict, 'leaks');
    assert.ok(result.hits > 0);
  });

  test('has no power where a model recalls nothing, where the end is refused, or hangs', async () => {
    const verdict = async (ask: (ask: Ask) => Faked): Promise<string> =>
      (await longContext.run(fakeLab({ seed: 6, ask }).lab)).verdict;
    assert.equal(await verdict(() => ({ content: ' word' })), 'no-power');
    const late = (faked: Faked) => (ask: Ask) => (ask.prompt.length > 4000 ? faked : recalling(ask));
    assert.equal(await verdict(late({ outcome: 'refused', status: 400 })), 'no-power');
    assert.equal(await verdict(late({ outcome: 'silent' })), 'no-power');
  });

  test('says why it can not be run', () => {
    const unfit = (knowledge: NonNullable<Parameters<typeof fakeLab>[0]['knowledge']>) =>
      longContext.unfit(fakeLab({ seed: 7, ask: recalling, knowledge }).lab);
    assert.equal(unfit({}), null);
    assert.match(unfit({ advertised: null }) ?? '', /--advertised/);
    assert.match(unfit({ advertised: 1500 }) ?? '', /2048/);
    assert.match(unfit({ ruler: null }) ?? '', /how many tokens/);
  });
});
