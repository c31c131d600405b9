/**
 * Goal: every fault of the catalogue does what it says with its guards off, and each guard alone stops it.
 * Method: one scripted story a fault, told once with the fault's guards off and the others on, once for each guard with nothing else on,
 * and once with every guard on. What the machines do not hold lives elsewhere, and is named here.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DecodePhase, Verdict } from './decode.js';
import { CATALOGUE, FAULTS, type FaultName, faultBits, faultsOf, guardsAgainst, isFaultName } from './faults.js';
import { GUARDS, type GuardName, guardBits, guardsOf, isGuardName } from './guards.js';
import { Scripted } from './scripted.js';
import { ScriptedWorld, type WorldOptions } from './scripted-world.js';

/** Guards that stop the fault outside of these machines, and where. */
const ELSEWHERE: Partial<Record<FaultName, Partial<Record<GuardName, string>>>> = {
  'stale-handle': { policy: 'the gateway refuses a request that carries a transfer handle before it is submitted' },
};

type Rules = Pick<WorldOptions, 'faults' | 'guards'>;
/** Tells the story; true: the deviation reached its end. `guard` is the one tried alone, if one is. */
type Story = (rules: Rules, guard: GuardName | null) => boolean;

const LIMIT = 9;

function world(rules: Rules, prefillPages: number, decodePages: number): ScriptedWorld {
  return new ScriptedWorld({ ...rules, prefillPages, decodePages });
}

/** Slot 0 has a write on the wire when its client leaves; what `then` does may give its page to slot 1. The write lands last. */
function lateWrite(rules: Rules, then: (told: ScriptedWorld) => void): boolean {
  const told = world(rules, 2, 1);
  told.submit(0, 1, LIMIT);
  told.transfer(0, 1);
  then(told);
  told.submit(1, 1, LIMIT);
  told.transfer(1, 1);
  told.land(1);
  told.verify(1);
  told.land(0);
  told.read(1);
  return told.hasLeaked;
}

/** Slot 1 acts for a tenant that sealed a page under hash 77; slot 0 asks for it. True: it decodes over it. */
function sharedPrefix(rules: Rules, hash: number): boolean {
  const decode = new Scripted('decode', { ...rules, prefixes: true });
  const start = { kind: 'start', attempt: 1, to: 1, room: 1, tokens: 1, promptPages: 1, pages: 1 } as const;
  decode.do({ ...start, slot: 1, tenant: 2, salt: 2 });
  decode.do({ kind: 'admit', slot: 1, attempt: 1 });
  decode.do({ kind: 'complete', slot: 1, attempt: 1, from: 1, to: 1, room: 1, tokens: 1 });
  decode.do({ kind: 'verified', slot: 1, attempt: 1 });
  decode.do({ kind: 'finish', slot: 1, attempt: 1, list: [[0, 77]] });
  decode.do({ ...start, tenant: 1, salt: 1 });
  decode.do({ kind: 'hit', attempt: 1, list: [[0, hash]] });
  if (decode.slot('prefix') !== 1) return false;
  decode.do({ kind: 'admit', attempt: 1 });
  decode.do({ kind: 'complete', attempt: 1, from: 1, to: 1, room: 1, tokens: 1 });
  // The page names its tenant, which is not the reader: so says whoever compares its tag.
  decode.do({ kind: 'verified', attempt: 1, code: Verdict.badTag });
  return decode.slot('phase') === DecodePhase.decoding;
}

const STORIES: Readonly<Record<FaultName, Story>> = {
  'rejected-stays-alive': (rules) => {
    const told = world(rules, 1, 2);
    told.submit(0, 2, 1);
    told.transfer(0, 2);
    told.land(0);
    told.verify(0);
    told.read(0);
    return told.hasLeaked;
  },
  'count-unchecked': (rules) => {
    const told = world(rules, 2, 2);
    told.submit(0, 2, LIMIT);
    told.transfer(0, 1);
    told.land(0);
    told.verify(0);
    told.read(0);
    return told.hasLeaked;
  },
  'silent-abort': (rules) => {
    const told = world(rules, 2, 2);
    told.submit(0, 2, LIMIT);
    told.transfer(0, 1);
    told.local('prefill', 'abandon', 0);
    told.land(0);
    told.verify(0);
    told.read(0);
    return told.hasLeaked;
  },
  'reuse-before-drain': (rules) => lateWrite(rules, (told) => told.clientLeaves(0)),
  'timeout-authorises-reuse': (rules) =>
    lateWrite(rules, (told) => {
      told.clientLeaves(0);
      told.local('decode', 'timeout', 0);
      told.deliver();
    }),
  'room-collision': (rules, guard) => {
    const told = world(rules, 3, 3);
    told.submit(0, 1, LIMIT);
    // Counts can tell only prompts of different lengths apart.
    told.submit(1, guard === 'count' || guard === 'usage' ? 2 : 1, LIMIT);
    told.local('decode', 'admit', 0);
    told.transfer(1, 2);
    told.land(1);
    told.verify(0);
    told.read(0);
    return told.hasLeaked;
  },
  'stale-handle': (rules) => {
    const told = world(rules, 1, 2);
    told.submit(0, 1, LIMIT);
    told.transfer(0, 1);
    told.land(0);
    told.verify(0);
    told.submit(1, 1, LIMIT);
    told.local('decode', 'attach', 1, { list: [[0, 0]] });
    told.deliver();
    told.read(1);
    return told.hasLeaked;
  },
  'retry-keeps-attempt': (rules) => {
    const told = world(rules, 1, 1);
    told.submit(0, 1, LIMIT, 1);
    told.transfer(0, 1);
    told.land(0);
    const repeated = told.wire.find((message) => message.event.kind === 'complete');
    assert.ok(repeated !== undefined);
    told.restartPrefill();
    told.local('decode', 'admit', 0);
    told.send('decode', repeated.event);
    told.verify(0);
    told.read(0);
    return told.hasLeaked;
  },
  'unfenced-restart': (rules) => lateWrite(rules, (told) => told.restartPrefill()),
  'torn-write': (rules) => {
    // The transport tears the write; the machines have only the guard.
    const told = world(rules, 1, 1);
    told.submit(0, 1, LIMIT);
    told.transfer(0, 1);
    told.land(0, false);
    told.verify(0);
    told.read(0);
    return told.hasLeaked;
  },
  'unannounced-rejection': (rules) => {
    const told = world(rules, 1, 2);
    told.submit(0, 2, 1);
    told.local('decode', 'admit', 0);
    told.deliver();
    for (let asked = 0; asked < 3; asked++) {
      told.send('gateway', { kind: 'timer', slot: 0 });
      told.local('decode', 'timer', 0);
      told.deliver();
    }
    return told.decode.free() < 2;
  },
  'unsalted-prefix': (rules) => sharedPrefix(rules, 77),
  'prefix-hash-collision': (rules) => sharedPrefix(rules, 78),
};

for (const name of FAULTS) {
  const { guards } = CATALOGUE[name];
  const story = STORIES[name];
  const others = GUARDS.filter((guard) => !guards.includes(guard));

  test(`${name} happens with ${guards.join(', ')} off`, () => {
    assert.equal(story({ faults: [name], guards: others }, null), true);
  });

  test(`${name} does not happen where it is not switched on, whatever guards are off`, () => {
    if (name === 'torn-write') return;
    assert.equal(story({ faults: [], guards: others }, null), false);
  });

  test(`${name} is stopped with every guard on`, () => {
    assert.equal(story({ faults: [name], guards: GUARDS }, null), false);
  });

  for (const guard of guards) {
    const place = ELSEWHERE[name]?.[guard];
    test(`${name} is stopped by ${guard} alone`, { skip: place ?? false }, () => {
      assert.equal(story({ faults: [name], guards: [] }, guard), true, 'the story has to go wrong without it');
      assert.equal(story({ faults: [name], guards: [guard] }, guard), false);
    });
  }
}

test('the catalogue says of every fault what it is, what stops it, and where it was seen in public', () => {
  assert.deepEqual(Object.keys(CATALOGUE), [...FAULTS]);
  for (const name of FAULTS) {
    const fault = CATALOGUE[name];
    assert.equal(fault.name, name);
    assert.ok(fault.guards.length > 0 && fault.guards.every(isGuardName));
    assert.equal(new Set(fault.guards).size, fault.guards.length);
    for (const words of [fault.deviation, fault.trigger, fault.seen, fault.source]) assert.ok(words.length > 10);
    assert.notEqual(fault.expected.on, 'leaked');
    assert.notEqual(fault.expected.on, 'hung');
  }
});

test('every guard stops some fault', () => {
  const used = new Set(FAULTS.flatMap((name) => CATALOGUE[name].guards));
  assert.deepEqual([...used].sort(), [...GUARDS].sort());
});

test('names and bits of faults and guards say the same', () => {
  for (const name of FAULTS) {
    assert.deepEqual(faultsOf(faultBits([name])), [name]);
    assert.deepEqual(guardsOf(guardsAgainst([name])).sort(), [...CATALOGUE[name].guards].sort());
  }
  assert.deepEqual(guardsOf(guardBits(['tag', 'policy'])), ['policy', 'tag']);
  assert.equal(isFaultName('tag'), false);
  assert.equal(isGuardName('torn-write'), false);
});
