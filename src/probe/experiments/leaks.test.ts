/**
 * Goal: boundary, canary and abort storm accuse an endpoint that answers from somebody else's prompt, and no other. Method: endpoints
 * that are functions, each with one weakness, and one without.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Ask } from '../client.js';
import type { Experiment, ExperimentResult } from '../experiment.js';
import { type Faked, type FakeOptions, fakeLab, recalling } from '../lab.test.help.js';
import { abortStorm } from './abort-storm.js';
import { boundary } from './boundary.js';
import { canary } from './canary.js';

const SEED = Number(process.env.SEED ?? 11);
const CONTEXT = 4096;

/** Counts as its ruler does: a character is a token. */
function sound(ask: Ask): Faked {
  const usage = { promptTokens: ask.prompt.length, completionTokens: ask.maxTokens, cachedTokens: null };
  if (ask.prompt.length + ask.maxTokens > CONTEXT) {
    return {
      outcome: 'refused',
      status: 400,
      error: { type: 'x', code: 'y', messageCharacters: 9, numbers: [CONTEXT] },
    };
  }
  return { usage, ...recalling(ask), ...(ask.leave === undefined ? {} : { outcome: 'left', content: '' }) };
}

async function run(experiment: Experiment, ask: FakeOptions['ask']): Promise<ExperimentResult> {
  const { lab } = fakeLab({ seed: SEED, ask });
  assert.equal(experiment.unfit(lab), null);
  return experiment.run(lab);
}

const code = ({ prompt }: Ask): string => /KVC-[a-z2-7]{26}/.exec(prompt)?.[0] ?? '';

for (const experiment of [boundary, canary, abortStorm]) {
  test(`${experiment.name} finds a sound endpoint isolated, within its plan (seed ${SEED})`, async () => {
    const { lab, asks } = fakeLab({ seed: SEED, ask: sound });
    const planned = experiment.plan(lab);
    const result = await experiment.run(lab);
    assert.equal(result.verdict, 'isolated', JSON.stringify(result));
    assert.equal(result.hits, 0);
    assert.ok(asks.length <= planned.requests, `${asks.length} requests, ${planned.requests} planned`);
  });

  test(`${experiment.name} has no power where a model gives no code back (seed ${SEED})`, async () => {
    const result = await run(experiment, (ask) => ({ ...sound(ask), content: 'I can not help with that.' }));
    assert.equal(result.verdict, 'no-power', JSON.stringify(result));
  });
}

describe(`boundary (seed ${SEED})`, () => {
  const weak: [string, (ask: Ask) => Faked, string, RegExp][] = [
    [
      'a silent truncation',
      (ask) => ({
        ...sound(ask),
        outcome: 'answered',
        status: 200,
        usage: { promptTokens: Math.min(ask.prompt.length, 4000), completionTokens: 8, cachedTokens: null },
        error: null,
      }),
      'no-power',
      /truncated: /,
    ],
    [
      'a placeholder',
      (ask) =>
        ask.prompt.length > 4000
          ? { ...recalling(ask), usage: { promptTokens: 1, completionTokens: 8, cachedTokens: null } }
          : sound(ask),
      'no-power',
      /placeholder: .*counted by the endpoint as 1 /,
    ],
    [
      'an empty 200',
      (ask) =>
        ask.prompt.length > 4000
          ? { usage: { promptTokens: ask.prompt.length, completionTokens: 0, cachedTokens: null } }
          : sound(ask),
      'no-power',
      /empty: /,
    ],
    [
      'a hang',
      (ask) => (ask.prompt.length > 4000 ? { outcome: 'hung', status: null } : sound(ask)),
      'starves',
      /hung: /,
    ],
    [
      'a server error',
      (ask) => (ask.prompt.length > 4080 ? { outcome: 'refused', status: 500 } : sound(ask)),
      'no-power',
      /server-error: /,
    ],
  ];
  for (const [title, ask, verdict, words] of weak) {
    test(`tells ${title}`, async () => {
      const result = await run(boundary, ask);
      assert.equal(result.verdict, verdict, JSON.stringify(result.evidence));
      assert.match(result.evidence.join('\n'), words);
    });
  }
});

test(`canary finds twelve characters of a marker in an answer to a prompt over the limit (seed ${SEED})`, async () => {
  let planted = '';
  const ask = (each: Ask): Faked => {
    if (each.tenant.name === 'acme' && code(each) !== '') planted = code(each);
    const isOver = each.prompt.length > CONTEXT && each.tenant.name === 'globex' && planted !== '';
    return isOver ? { content: `and ${planted.slice(9, 21)} so on` } : sound(each);
  };
  const result = await run(canary, ask);
  assert.equal(result.verdict, 'leaks');
  assert.ok(result.hits >= 1);
  const eleven = await run(canary, (each) => {
    const faked = ask(each);
    return faked.content?.startsWith('and ') === true ? { content: `and ${planted.slice(9, 20)} so on` } : faked;
  });
  assert.equal(eleven.hits, 0, 'eleven characters are no hit');
});

describe(`abort-storm (seed ${SEED})`, () => {
  test('finds a marker of the tenant that left', async () => {
    let left = '';
    const result = await run(abortStorm, (each) => {
      if (each.leave !== undefined) left = code(each);
      const spoilt = each.leave === undefined && each.tenant.name === 'globex' && left !== '';
      return spoilt ? { ...sound(each), content: left } : sound(each);
    });
    assert.equal(result.verdict, 'leaks');
    assert.ok(result.sent < 200, 'it stops when it knows');
  });

  test('sends a prompt as short as the one that leaves just then, and asks for the name that it states', async () => {
    const { lab, asks } = fakeLab({ seed: SEED, ask: sound });
    await abortStorm.run(lab);
    const first = asks.findIndex(({ leave }) => leave !== undefined);
    const pairs = Array.from({ length: 32 }, (_, i) => [asks[first + 2 * i]!, asks[first + 2 * i + 1]!] as const);
    for (const [leaver, stayer] of pairs) {
      assert.ok(leaver.leave !== undefined && 'afterMs' in leaver.leave && stayer.leave === undefined);
      assert.notEqual(leaver.tenant.name, stayer.tenant.name);
      assert.ok(leaver.prompt.length <= 300 && stayer.prompt.length <= 200, 'both are short');
      const name = /The code of ([a-z]+):$/.exec(stayer.prompt)?.[1];
      assert.ok(name !== undefined && leaver.prompt.includes(`The code of ${name}: `), 'both are about one name');
    }
  });

  test('finds answers that go wrong in the storm without a marker in them', async () => {
    let open = 0;
    const result = await run(abortStorm, (each) => {
      if (each.leave !== undefined) open++;
      const spoilt = each.leave === undefined && each.tenant.name === 'globex' && open > 0 && open-- > 0;
      return spoilt ? { ...sound(each), content: 'something else' } : sound(each);
    });
    assert.equal(result.verdict, 'leaks', JSON.stringify(result));
    assert.equal(result.hits, 0);
  });

  test('does not accuse an endpoint whose answers differ as much in quiet', async () => {
    let count = 0;
    const result = await run(abortStorm, (each) => {
      const faked = sound(each);
      return each.tenant.name === 'globex' && count++ % 4 === 0
        ? { ...faked, content: `${faked.content ?? ''} ${count}` }
        : faked;
    });
    assert.equal(result.verdict, 'isolated', JSON.stringify(result));
  });
});
