/**
 * Goal: which engine gets a request is decided by affinity and load, alike every time, and no tenant can aim. Method: the choice alone,
 * over many keys from a seed.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Prng } from '../base/prng.js';
import { AFFINITY_CHARACTERS, AFFINITY_SLACK_SHARE } from './bounds.js';
import { affinityKey, type Candidate, chooseEngine } from './engines.js';

const POOL = 1000;
const SLACK = POOL * AFFINITY_SLACK_SHARE;

function engine(name: string, over: Partial<Candidate> = {}): Candidate {
  return { name, loadTokens: 0, poolTokens: POOL, wouldWait: false, ...over };
}

const text = (prompt: string, salt = 'salt of acme'): Buffer => affinityKey(salt, { kind: 'text', text: prompt });
const nameFor = (engines: readonly Candidate[], key: Buffer): string => chooseEngine(engines, () => key).name;
const idle = ['a', 'b', 'c', 'd'].map((name) => engine(name));

describe('affinity', () => {
  test('sends what has the same beginning to the same engine, in whatever order the engines stand', () => {
    const beginning = 'You are a helpful assistant. '.repeat(40).slice(0, AFFINITY_CHARACTERS);
    const first = nameFor(idle, text(`${beginning} one`));
    for (let i = 0; i < 50; i++) assert.equal(nameFor([...idle].reverse(), text(`${beginning} and ${i}`)), first);
  });

  test('counts a chat by its roles and texts from the first message on', () => {
    const chat = (...contents: string[]): Buffer =>
      affinityKey('salt', { kind: 'chat', messages: contents.map((content) => ({ role: 'user', content })) });
    const system = 'x'.repeat(AFFINITY_CHARACTERS);
    assert.deepEqual(chat(system, 'one'), chat(system, 'two'));
    assert.notDeepEqual(chat('x', 'one'), chat('x', 'two'));
  });

  test('does not let a tenant know where another’s prompts go: the same prompts fall otherwise for each salt', () => {
    const prompts = Array.from({ length: 400 }, (_, i) => `prompt ${i}`);
    const together = prompts.filter(
      (each) => nameFor(idle, text(each, 'salt of acme')) === nameFor(idle, text(each, 'salt of globex')),
    );
    // A quarter by chance; 400 draws stay within 60 to 140 but once in 10^5.
    assert.ok(together.length > 60 && together.length < 140, `${together.length} of 400 fall alike`);
  });

  test('is not worked out while there is no choice', () => {
    const only = engine('only');
    const never = (): Buffer => assert.fail('nobody needs the key');
    assert.equal(chooseEngine([only], never), only);
  });
});

const SEED = 60_601;
describe(`over many prefixes (seed ${SEED})`, () => {
  const prng = new Prng(SEED);
  const keys = Array.from({ length: 4000 }, () => text(`prefix ${prng.u32()}`));
  const homes = keys.map((key) => nameFor(idle, key));

  test('every engine gets its fair share of them', () => {
    for (const { name } of idle) {
      const share = homes.filter((home) => home === name).length;
      assert.ok(share > 850 && share < 1150, `${name} has ${share} of 4000`);
    }
  });

  test('an engine that goes moves its own only, and one that comes takes its share of all', () => {
    const left = idle.filter(({ name }) => name !== 'b');
    keys.forEach((key, i) => {
      if (homes[i] !== 'b') assert.equal(nameFor(left, key), homes[i]);
    });
    const more = [...idle, engine('e')];
    const moved = keys.filter((key, i) => nameFor(more, key) !== homes[i]);
    assert.ok(moved.every((key) => nameFor(more, key) === 'e'));
    assert.ok(moved.length > 650 && moved.length < 950, `${moved.length} of 4000 moved`);
  });

  test('whatever the load, the one chosen is at home there or the least loaded, and never much fuller than that', () => {
    keys.slice(0, 2000).forEach((key, i) => {
      const loaded = idle.map(({ name }) =>
        engine(name, { loadTokens: prng.below(POOL), wouldWait: prng.chance(0.3) }),
      );
      const chosen = chooseEngine(loaded, () => key);
      const free = loaded.filter(({ wouldWait }) => !wouldWait);
      const least = Math.min(...(free.length > 0 ? free : loaded).map(({ loadTokens }) => loadTokens));
      assert.ok(chosen.name === homes[i] || chosen.loadTokens === least);
      assert.ok(chosen.loadTokens - least <= SLACK);
      assert.ok(!chosen.wouldWait || free.length === 0, 'nobody waits while another engine has a turn for them');
    });
  });
});

describe('load', () => {
  const key = text('a prefix');
  const home = nameFor(idle, key);
  const withHome = (over: Partial<Candidate>, others: Partial<Candidate> = {}): Candidate[] =>
    idle.map(({ name }) => engine(name, name === home ? over : others));

  test('leaves a prefix at its home up to the slack, and one token more sends it to the least loaded', () => {
    assert.equal(nameFor(withHome({ loadTokens: SLACK }), key), home);
    assert.notEqual(nameFor(withHome({ loadTokens: SLACK + 1 }), key), home);
    assert.equal(nameFor(withHome({ loadTokens: SLACK + 500 }, { loadTokens: 500 }), key), home);
  });

  test('of a home where it would wait sends it elsewhere only where it would not', () => {
    assert.notEqual(nameFor(withHome({ wouldWait: true }), key), home);
    assert.equal(nameFor(withHome({ wouldWait: true }, { wouldWait: true }), key), home);
  });

  test('takes the one with the fewest tokens in flight', () => {
    const loaded = idle.map(({ name }, i) => engine(name, { loadTokens: name === home ? 900 : 100 + i }));
    const [least] = loaded.filter(({ name }) => name !== home).sort((a, b) => a.loadTokens - b.loadTokens);
    assert.equal(nameFor(loaded, key), least!.name);
  });
});
