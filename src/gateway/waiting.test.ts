/**
 * Goal: turns are fair, nobody starves, and what is taken comes back. Method: the waiting room alone under a manual clock, and
 * random histories against its invariants.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { Prng } from '../base/prng.js';
import { OVERTAKES_MAX } from './bounds.js';
import { openAccount, type RoomSize, type TenantAccount, type Ticket, WaitingRoom } from './waiting.js';

interface World {
  readonly clock: ManualClock;
  readonly room: WaitingRoom;
  readonly accounts: TenantAccount[];
  /** Labels of granted turns, in order. */
  readonly granted: string[];
  readonly refused: [string, string][];
  readonly tickets: Map<string, Ticket>;
  ask(label: string, tenant: number, tokens: number): void;
  finish(label: string): void;
}

function world(
  size: Partial<RoomSize> = {},
  bounds: { tenants?: number; tenantOpenMax?: number; waitingMax?: number } = {},
): World {
  const clock = new ManualClock();
  const tenants = bounds.tenants ?? 3;
  const whole: RoomSize = { runningMax: 1, poolTokens: 1600, pageTokens: 16, requestTokensMax: 800, ...size };
  const room = new WaitingRoom({
    clock,
    size: () => whole,
    tenants,
    tenantOpenMax: bounds.tenantOpenMax ?? 100,
    waitingMax: bounds.waitingMax ?? 100,
    waitMsMax: 1000,
  });
  const accounts = Array.from({ length: tenants }, (_, i) =>
    openAccount({ number: i + 1, name: `t${i + 1}`, salt: '' }),
  );
  const granted: string[] = [];
  const refused: [string, string][] = [];
  const tickets = new Map<string, Ticket>();
  return {
    clock,
    room,
    accounts,
    granted,
    refused,
    tickets,
    ask(label, tenant, tokens) {
      const ticket = room.enter(accounts[tenant - 1]!, tokens, {
        granted: () => granted.push(label),
        refused: (error) => refused.push([label, error.code]),
      });
      tickets.set(label, ticket);
    },
    finish(label) {
      const ticket = tickets.get(label)!;
      ticket.ended();
      ticket.released();
    },
  };
}

function codeOf(body: () => void): CodedError {
  try {
    body();
  } catch (thrown) {
    return thrown as CodedError;
  }
  throw new Error('nothing was thrown');
}

describe('turns', () => {
  test('go round between tenants, first in first out inside each', () => {
    const w = world();
    w.ask('a1', 1, 16);
    for (const label of ['a2', 'a3', 'a4']) w.ask(label, 1, 16);
    w.ask('b1', 2, 16);
    w.ask('c1', 3, 16);
    w.ask('b2', 2, 16);
    for (let i = 0; i < 6; i++) w.finish(w.granted.at(-1)!);
    assert.deepEqual(w.granted, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  test('a tenant that asks a hundred times delays another by one turn', () => {
    const w = world();
    for (let i = 0; i < 90; i++) w.ask(`a${i}`, 1, 16);
    w.ask('b', 2, 16);
    w.finish('a0');
    w.finish(w.granted.at(-1)!);
    assert.ok(w.granted.slice(0, 3).includes('b'), w.granted.join());
  });

  test('a large request is passed by a bounded number of small ones, and then by nobody', () => {
    const w = world({ runningMax: 50 });
    // 720 of 1,600 tokens are free; the large one needs 800.
    for (let i = 0; i < 10; i++) w.ask(`held${i}`, 3, 80);
    w.ask('other', 2, 80);
    w.ask('large', 1, 800);
    for (let i = 0; i < 10; i++) w.ask(`small${i}`, 2, 16);
    const passed = w.granted.filter((label) => label.startsWith('small'));
    assert.equal(passed.length, OVERTAKES_MAX);
    w.finish('held0');
    assert.ok(!w.granted.includes('large'), 'there is room for it before it fits');
    w.finish('held1');
    assert.equal(w.granted[11 + OVERTAKES_MAX], 'large', w.granted.join());
  });

  test('one tenant never takes the last permit while there are others', () => {
    const w = world({ runningMax: 4 });
    for (let i = 0; i < 9; i++) w.ask(`a${i}`, 1, 16);
    assert.equal(w.accounts[0]!.running, 3);
    w.ask('b', 2, 16);
    assert.equal(w.granted.at(-1), 'b');
  });

  test('nor the room of the largest request', () => {
    const w = world({ runningMax: 100 });
    for (let i = 0; i < 99; i++) w.ask(`a${i}`, 1, 80);
    assert.equal(w.accounts[0]!.leasedTokens, 800);
    w.ask('b', 2, 800);
    assert.equal(w.granted.at(-1), 'b');
  });

  test('a lone tenant has every permit', () => {
    const w = world({ runningMax: 4 }, { tenants: 1 });
    for (let i = 0; i < 9; i++) w.ask(`a${i}`, 1, 16);
    assert.equal(w.accounts[0]!.running, 4);
  });
});

describe('an engine that takes no requests any more', () => {
  test('sends what waits away in its order; what has nowhere to go is refused, and what runs stays', () => {
    const w = world({ runningMax: 1 });
    const displaced: string[] = [];
    const enter = (label: string, tenant: number): Ticket =>
      w.room.enter(w.accounts[tenant - 1]!, 16, {
        granted: () => w.granted.push(label),
        refused: (error) => w.refused.push([label, error.code]),
        displaced: () => displaced.push(label),
      });
    const running = enter('runs', 1);
    for (const [label, tenant] of [
      ['a1', 1],
      ['b1', 2],
      ['a2', 1],
    ] as const) {
      enter(label, tenant);
    }
    w.ask('own', 3, 16);
    w.room.evict(() => new CodedError('engine_unavailable', 'It is gone.'));
    assert.deepEqual([displaced, w.refused], [['a1', 'a2', 'b1'], [['own', 'engine_unavailable']]]);
    assert.deepEqual([w.room.running, w.room.waiting, w.room.loadTokens, w.accounts[0]!.waiting], [1, 0, 16, 0]);
    running.ended();
    running.released();
    assert.deepEqual([w.granted, w.clock.waiting], [['runs'], 0]);
  });

  test('who waited elsewhere waits for the rest of its time', () => {
    const w = world();
    w.ask('runs', 1, 16);
    const refused: string[] = [];
    const turn = { granted() {}, refused: (error: CodedError) => refused.push(error.code) };
    w.room.enter(w.accounts[1]!, 16, turn, 900);
    w.clock.advance(99);
    assert.deepEqual(refused, []);
    w.clock.advance(1);
    assert.deepEqual(refused, ['no_capacity']);
  });
});

describe('one room of several', () => {
  test('holds a tenant to its ceiling here by what it has here, not elsewhere', () => {
    const here = world({ runningMax: 4 });
    const [acme] = here.accounts;
    // As if it had much at another engine.
    acme!.running = 50;
    acme!.leasedTokens = 5000;
    for (let i = 0; i < 9; i++) here.ask(`a${i}`, 1, 16);
    assert.equal(here.room.running, 3);
  });

  test('says beforehand whether a request would wait, as it then does', () => {
    const prng = new Prng(1177);
    const w = world({ runningMax: 6, poolTokens: 640, requestTokensMax: 160 });
    let [waited, went] = [0, 0];
    for (let i = 0; i < 400; i++) {
      const tenant = prng.between(1, 3);
      const tokens = prng.between(1, 160);
      const said = w.room.wouldWait(w.accounts[tenant - 1]!, tokens);
      w.ask(`r${i}`, tenant, tokens);
      const waits = w.tickets.get(`r${i}`)!.phase === 'waiting';
      // It may say that a request waits which then overtakes a larger one.
      if (!said) assert.ok(!waits, `request ${i} waits all the same`);
      if (waits) waited++;
      else went++;
      const drains = prng.chance(0.2);
      while (w.room.running > 0 && (drains ? w.room.running > 2 : w.room.waiting > 40)) {
        w.finish(prng.pick([...w.tickets].filter(([, ticket]) => ticket.phase === 'leased'))[0]);
      }
    }
    assert.ok(waited > 20 && went > 20, `${waited} waited, ${went} went`);
  });

  test('takes back what a request turns out not to need, and that is somebody’s turn', () => {
    const w = world({ runningMax: 8, poolTokens: 320, requestTokensMax: 320 }, { tenants: 1 });
    w.ask('large', 1, 300);
    w.ask('next', 1, 100);
    assert.deepEqual(w.granted, ['large']);
    w.tickets.get('large')!.shrink(400);
    assert.equal(w.room.heldTokens, 304);
    w.tickets.get('large')!.shrink(200);
    assert.deepEqual([w.granted, w.room.heldTokens, w.accounts[0]!.leasedTokens], [['large', 'next'], 320, 320]);
    for (const label of ['large', 'next']) w.finish(label);
    w.tickets.get('large')!.shrink(1);
    assert.deepEqual([w.room.heldTokens, w.accounts[0]!.leasedTokens, w.accounts[0]!.drainingTokens], [0, 0, 0]);
  });
});

describe('tokens', () => {
  test('are taken in whole pages, drain from end to release, and only then admit another', () => {
    const w = world({ runningMax: 8, poolTokens: 64, requestTokensMax: 64 }, { tenants: 1 });
    w.ask('a', 1, 33);
    assert.equal(w.accounts[0]!.leasedTokens, 48);
    w.ask('b', 1, 20);
    w.tickets.get('a')!.ended();
    assert.deepEqual([w.accounts[0]!.leasedTokens, w.accounts[0]!.drainingTokens, w.room.running], [0, 48, 0]);
    assert.deepEqual(w.granted, ['a'], 'draining pages were promised to another request');
    w.tickets.get('a')!.released();
    assert.deepEqual(w.granted, ['a', 'b']);
  });

  test('a request of more than the whole pages of a pool gets its turn when nothing else is held', () => {
    const w = world({ poolTokens: 100, requestTokensMax: 100 }, { tenants: 1 });
    w.ask('a', 1, 100);
    assert.deepEqual(w.granted, ['a']);
  });
});

describe('bounds', () => {
  test('a tenant meets its own 429 before the shared 503', () => {
    const w = world({}, { tenantOpenMax: 3, waitingMax: 2 });
    for (const label of ['a1', 'a2', 'a3']) w.ask(label, 1, 16);
    const own = codeOf(() => w.ask('a4', 1, 16));
    assert.deepEqual([own.code, own.status, own.retryAfterS], ['rate_limit_exceeded', 429, 1]);
    const shared = codeOf(() => w.ask('b1', 2, 16));
    assert.deepEqual([shared.code, shared.status, shared.retryAfterS], ['no_capacity', 503, 1]);
  });

  test('what a refusal says does not depend on other tenants', () => {
    const texts = [0, 1].map((others) => {
      const w = world({}, { tenantOpenMax: 2, waitingMax: 4 });
      for (let i = 0; i < others * 2; i++) w.ask(`b${i}`, 2, 16);
      w.ask('a1', 1, 16);
      w.ask('a2', 1, 16);
      return codeOf(() => w.ask('a3', 1, 16)).message;
    });
    assert.equal(texts[0], texts[1]);
  });

  test('a request that waits too long is refused with no_capacity, and its place is free', () => {
    const w = world();
    w.ask('a', 1, 16);
    w.ask('b', 2, 16);
    w.clock.advance(1001);
    assert.deepEqual(w.refused, [['b', 'no_capacity']]);
    assert.equal(w.room.waiting, 0);
    assert.equal(w.clock.waiting, 0, 'a timer was left behind');
  });

  test('a request that left is not granted a turn later, and leaves no timer', () => {
    const w = world();
    w.ask('a', 1, 16);
    w.ask('b', 2, 16);
    w.tickets.get('b')!.cancel();
    w.tickets.get('b')!.cancel();
    w.finish('a');
    assert.deepEqual(w.granted, ['a']);
    assert.equal(w.clock.waiting, 0);
  });
});

const SEED = 41_077;
test(`random histories keep the sums and end with nothing held (seed ${SEED})`, () => {
  const prng = new Prng(SEED);
  for (let history = 0; history < 60; history++) {
    const size = { runningMax: prng.between(1, 6), poolTokens: 16 * prng.between(4, 40), requestTokensMax: 64 };
    const w = world(size, { tenants: prng.between(1, 3), tenantOpenMax: 12, waitingMax: 20 });
    let asked = 0;
    for (let i = 0; i < 200; i++) {
      const labels = [...w.tickets.keys()].filter((label) => w.tickets.get(label)!.phase !== 'over');
      if (labels.length === 0 || prng.chance(0.5)) {
        try {
          w.ask(`r${asked++}`, prng.between(1, w.accounts.length), prng.between(1, 64));
        } catch {}
      } else {
        const ticket = w.tickets.get(prng.pick(labels))!;
        if (ticket.phase === 'waiting') ticket.cancel();
        else if (ticket.phase === 'leased') ticket.ended();
        else ticket.released();
      }
      const sum = (pick: (account: TenantAccount) => number): number =>
        w.accounts.reduce((total, account) => total + pick(account), 0);
      assert.equal(
        sum((each) => each.running),
        w.room.running,
      );
      assert.equal(
        sum((each) => each.waiting),
        w.room.waiting,
      );
      assert.equal(
        sum((each) => each.leasedTokens + each.drainingTokens),
        w.room.heldTokens,
      );
      assert.ok(w.room.heldTokens <= size.poolTokens && w.room.running <= size.runningMax);
    }
    for (;;) {
      const open = [...w.tickets.values()].filter((each) => each.phase !== 'over');
      if (open.length === 0) break;
      const going = open.filter((each) => each.phase !== 'waiting');
      assert.ok(going.length > 0, 'requests wait while nothing runs');
      for (const each of going) {
        if (each.phase === 'leased') each.ended();
        each.released();
      }
    }
    assert.deepEqual([w.room.running, w.room.waiting, w.room.heldTokens], [0, 0, 0]);
  }
});
