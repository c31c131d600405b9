// Goal: after the fence nothing lands. Method: a real writer thread, and a revoke put between any two atomic operations of `enter`.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import {
  awaitRounds,
  fillPayload,
  GO,
  leaseTag,
  newEnds,
  newPool,
  payloadWord,
  startThread,
} from './fixture.test.help.js';
import { REGISTRATIONS_MAX, RegistrationTable } from './registration.js';
import { readTag, writeTag } from './tag.js';

test('a writer thread lands until its registration is revoked; what decode writes afterwards stays', async () => {
  const target = newPool(1);
  const registrations = new RegistrationTable(2);
  const handle = registrations.register(2)!;
  const job = {
    kind: 'land-in-loop' as const,
    target: target.descriptor(),
    registrations: registrations.buffer,
    handle,
  };
  const thread = await startThread(job);
  Atomics.store(thread.gate, GO, 1);
  Atomics.notify(thread.gate, GO);
  assert.ok(awaitRounds(thread.gate, 20));
  assert.ok(registrations.counts(handle).landed >= 20);
  assert.ok(registrations.revoke(handle));
  fillPayload(target, 0, -5);
  writeTag(target, 0, leaseTag({ owner: 1 }));
  const before = registrations.totals();
  assert.ok(awaitRounds(thread.gate, 200));
  const after = registrations.totals();
  await thread.stop();
  assert.equal(after.landed, before.landed);
  assert.ok(after.refused >= before.refused + 199, `refused ${before.refused}, then ${after.refused}`);
  for (let i = 0; i < target.geometry.payloadBytes / 4; i++) assert.equal(payloadWord(target, 0, i), -5);
  assert.equal(readTag(target, 0).owner, 1);
});

test('fencing again and again under a writer that never stops, no page changes behind a fence that has closed', async () => {
  const target = newPool(1);
  const registrations = new RegistrationTable(1);
  let handle = registrations.register(2)!;
  const job = {
    kind: 'land-in-loop' as const,
    target: target.descriptor(),
    registrations: registrations.buffer,
    handle,
  };
  for (let cycle = 0; cycle < 5; cycle++) {
    const thread = await startThread({ ...job, handle });
    Atomics.store(thread.gate, GO, 1);
    Atomics.notify(thread.gate, GO);
    assert.ok(awaitRounds(thread.gate, 3));
    assert.ok(registrations.revoke(handle));
    fillPayload(target, 0, -cycle - 1);
    assert.ok(awaitRounds(thread.gate, 20));
    for (let i = 0; i < target.geometry.payloadBytes / 4; i++) assert.equal(payloadWord(target, 0, i), -cycle - 1);
    await thread.stop();
    handle = registrations.register(cycle)!;
  }
});

/** Runs `act`, and `interrupt` just before its atomic operation number `at`; answers whether it came to that. */
function interrupted(at: number, act: () => void, interrupt: () => void): boolean {
  let [operations, happened] = [0, false];
  const names = ['add', 'sub', 'load', 'store'] as const;
  const mocks = names.map((name) => {
    const real = Atomics[name] as (...args: unknown[]) => unknown;
    return mock.method(Atomics, name, (...args: unknown[]) => {
      if (!happened && operations++ === at) {
        happened = true;
        interrupt();
      }
      return real(...args);
    });
  });
  act();
  for (const one of mocks) one.mock.restore();
  return happened;
}

test('a revoke between any two operations of enter either stops the copy or does not say that the fence is closed', () => {
  let points = 0;
  for (let at = 0; ; at++) {
    const table = new RegistrationTable(1);
    const handle = table.register(2)!;
    let [entered, closed] = [false, false];
    const enter = (): void => {
      entered = table.enter(handle);
    };
    const revoke = (): void => {
      closed = table.revoke(handle);
    };
    if (!interrupted(at, enter, revoke)) break;
    points++;
    assert.ok(!(entered && closed), `a copy began behind the fence; the revoke came before operation ${at}`);
  }
  assert.ok(points >= 2, 'the revoke came before and after the counter rose');
});

test('revoke does not say that the fence is closed while a copy is in flight, and isQuiet says when it is', () => {
  const table = new RegistrationTable(1);
  const handle = table.register(2)!;
  assert.ok(table.enter(handle));
  assert.equal(table.revoke(handle), false);
  assert.equal(table.isRegistered(handle), false);
  assert.equal(table.isQuiet(handle), false);
  assert.equal(table.register(3), null, 'the entry is not used again before the fence is closed');
  table.leave(handle);
  assert.equal(table.isQuiet(handle), true);
  assert.equal(table.revoke(handle), true);
  assert.notEqual(table.register(3), null);
});

test('a handle of an earlier registration opens nothing, and revokes nobody', () => {
  const table = new RegistrationTable(1);
  const stale = table.register(2)!;
  assert.ok(table.revoke(stale));
  const fresh = table.register(3)!;
  assert.equal(table.enter(stale), false);
  assert.ok(table.revoke(stale));
  assert.ok(table.isRegistered(fresh));
  assert.equal(table.peerOf(stale), null);
  assert.equal(table.peerOf(fresh), 3);
  assert.deepEqual(table.counts(fresh), { inFlight: 0, landed: 0, refused: 1 });
});

test('a peer whose thread has ended inside a copy is fenced without waiting for it', () => {
  const table = new RegistrationTable(1);
  const handle = table.register(2)!;
  assert.ok(table.enter(handle));
  table.revokeEnded(handle);
  assert.ok(table.isQuiet(handle));
  assert.equal(table.enter(handle), false);
});

test('a full table registers nobody else, and its size is bounded', () => {
  const table = new RegistrationTable(2);
  const [first] = [table.register(1)!, table.register(2)!];
  assert.equal(table.register(3), null);
  assert.ok(table.revoke(first));
  assert.notEqual(table.register(3), null);
  assert.throws(() => new RegistrationTable(REGISTRATIONS_MAX + 1), /1 to 4096 entries/);
  assert.throws(() => table.enter(0), /comes from register/);
});

test('writes that were posted before a revoke are refused when they come due, and leave the page alone', () => {
  const { source, target, registrations, handle, wire } = newEnds();
  fillPayload(source, 0, 7);
  wire.post({ room: 1n, slot: 3, attempt: 1, sourcePage: 0, targetPage: 2, tag: leaseTag() }, 0);
  assert.ok(registrations.revoke(handle));
  wire.poll(0);
  assert.equal(payloadWord(target, 2, 0), 0);
  assert.ok(target.header(2).every((word) => word === 0));
  assert.deepEqual(registrations.totals(), { inFlight: 0, landed: 0, refused: 1 });
});

test('a table whose owner is gone refuses whatever was let in before, and counts it; an entry can be used again', () => {
  const table = new RegistrationTable(3);
  const handles = [table.register(1)!, table.register(2)!];
  table.revokeAll();
  for (const handle of handles) {
    assert.equal(table.isRegistered(handle), false);
    assert.equal(table.enter(handle), false);
  }
  assert.equal(table.totals().refused, 2);
  const again = table.register(3)!;
  assert.ok(!handles.includes(again));
  assert.equal(table.enter(again), true);
  table.leave(again);
});
