// Goal: no step's token leaves if a page it read was not its own. Method: every wrong word, and writes that land between the checks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
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
import type { PagePool } from './pool.js';
import { type LeaseIdentity, ReadGuard, verdictWords } from './read-guard.js';
import { RegistrationTable } from './registration.js';
import {
  beginWrite,
  OWNER_TENANT,
  type PageTag,
  TAG_IS_LANDING,
  TAG_IS_UNWRITTEN,
  TAG_OWN,
  TAG_TOO_SHORT,
  TAG_WRONG_ATTEMPT,
  TAG_WRONG_EPOCH,
  TAG_WRONG_INCARNATION,
  TAG_WRONG_OWNER,
  TAG_WRONG_PLACE,
  TAG_WRITTEN_AT_STEP,
  type TagVerdict,
  writeTag,
} from './tag.js';

const OWN: LeaseIdentity = { slot: 3, attempt: 1, incarnation: 7, tenant: 2 };
/** A request of 40 tokens: pages 5, 2 and 7, the last one filled by 8. */
const PAGES = Int32Array.of(5, 2, 7);
const EPOCHS = Int32Array.of(1, 4, 9);
const TOKENS = 40;

function tagAt(place: number): PageTag {
  return leaseTag({ place, epoch: EPOCHS[place], filled: place === 2 ? 8 : 16 });
}

function requestPool(): PagePool {
  const pool = newPool(8);
  for (let place = 0; place < 3; place++) writeTag(pool, PAGES[place], tagAt(place));
  return pool;
}

test('a request that reads its own pages passes, and every tag is counted', () => {
  const guard = new ReadGuard();
  assert.equal(guard.check(requestPool(), PAGES, EPOCHS, 3, OWN, TOKENS), TAG_OWN);
  assert.equal(guard.tagsChecked, 3);
});

test('one wrong word in any page is found, named and placed (seed 6)', () => {
  const wrongs: [Partial<PageTag>, TagVerdict][] = [
    [{ owner: 4 }, TAG_WRONG_OWNER],
    [{ ownerKind: 0 }, TAG_WRONG_OWNER],
    [{ ownerKind: OWNER_TENANT, owner: 2 }, TAG_WRONG_OWNER],
    [{ attempt: 0 }, TAG_WRONG_ATTEMPT],
    [{ incarnation: 6 }, TAG_WRONG_INCARNATION],
    [{ epoch: 77 }, TAG_WRONG_EPOCH],
    [{ place: 3 }, TAG_WRONG_PLACE],
    [{ filled: 7 }, TAG_TOO_SHORT],
  ];
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 }), fc.constantFrom(...wrongs), (place, [change, wanted]) => {
      const pool = requestPool();
      writeTag(pool, PAGES[place], { ...tagAt(place), ...change });
      const guard = new ReadGuard();
      assert.equal(guard.check(pool, PAGES, EPOCHS, 3, OWN, TOKENS), wanted);
      assert.deepEqual([guard.lastPage, guard.lastPlace], [PAGES[place], place]);
      assert.ok(guard.words(pool, wanted, OWN).includes(verdictWords(wanted)));
    }),
    { seed: 6 },
  );
});

test('pages that were never written, or too few of them, fail closed', () => {
  const guard = new ReadGuard();
  assert.equal(guard.check(newPool(8), PAGES, EPOCHS, 3, OWN, TOKENS), TAG_IS_UNWRITTEN);
  assert.equal(guard.check(requestPool(), PAGES, EPOCHS, 2, OWN, TOKENS), TAG_TOO_SHORT);
  assert.match(guard.words(requestPool(), TAG_TOO_SHORT, OWN), /got only 2 pages/);
});

test('pages leased ahead for tokens that are not there yet are not read, so they are not checked', () => {
  const guard = new ReadGuard();
  assert.equal(
    guard.check(requestPool(), Int32Array.of(5, 2, 7, 0), Int32Array.of(1, 4, 9, 1), 4, OWN, TOKENS),
    TAG_OWN,
  );
});

test('a sealed page passes where the caller marks it and the tenant is the same, and nowhere else', () => {
  const pool = requestPool();
  const guard = new ReadGuard();
  const seal = (owner: number): void =>
    writeTag(pool, PAGES[0], { ...tagAt(0), ownerKind: OWNER_TENANT, owner, attempt: 0 });
  seal(2);
  assert.equal(guard.check(pool, PAGES, EPOCHS, 3, OWN, TOKENS, 1), TAG_OWN);
  assert.equal(guard.check(pool, PAGES, EPOCHS, 3, OWN, TOKENS, 0), TAG_WRONG_OWNER);
  assert.equal(guard.check(pool, PAGES, EPOCHS, 3, OWN, TOKENS, 2), TAG_WRONG_OWNER);
  seal(1);
  assert.equal(guard.check(pool, PAGES, EPOCHS, 3, OWN, TOKENS, 1), TAG_WRONG_OWNER);
});

test('a write that lands between the two checks is found by the second, in one thread', () => {
  const { source, target, wire } = newEnds();
  const guard = new ReadGuard();
  const page = Int32Array.of(0);
  const check = (): TagVerdict => guard.check(target, page, Int32Array.of(5), 1, OWN, 16);
  fillPayload(target, 0, 1);
  writeTag(target, 0, leaseTag());
  fillPayload(source, 4, 2);
  const tag = leaseTag({ owner: 9 });
  wire.post({ room: 1n, slot: 9, attempt: 1, sourcePage: 4, targetPage: 0, tag }, 0);
  assert.equal(check(), TAG_OWN);
  wire.poll(0);
  assert.equal(payloadWord(target, 0, 0), 2, 'the step would have read foreign bytes');
  assert.equal(check(), TAG_WRONG_OWNER);
});

test('a write of which only payload has come by the second check is found by its mark', () => {
  const pool = requestPool();
  const guard = new ReadGuard();
  assert.equal(guard.check(pool, PAGES, EPOCHS, 3, OWN, TOKENS), TAG_OWN);
  beginWrite(pool, PAGES[1]);
  fillPayload(pool, PAGES[1], 2);
  assert.equal(guard.check(pool, PAGES, EPOCHS, 3, OWN, TOKENS), TAG_IS_LANDING);
  assert.match(guard.words(pool, TAG_IS_LANDING, OWN), /landing now in page 2 at place 1/);
});

test('a write that lands between the two checks is found by the second, from another thread', async () => {
  const target = newPool(1);
  const registrations = new RegistrationTable(1);
  const handle = registrations.register(2)!;
  const job = { kind: 'land' as const, target: target.descriptor(), registrations: registrations.buffer, handle };
  const thread = await startThread(job);
  const guard = new ReadGuard();
  const check = (): TagVerdict => guard.check(target, Int32Array.of(0), Int32Array.of(5), 1, OWN, 16);
  fillPayload(target, 0, -1);
  writeTag(target, 0, leaseTag());
  assert.equal(check(), TAG_OWN);
  Atomics.store(thread.gate, GO, 1);
  Atomics.notify(thread.gate, GO);
  assert.ok(awaitRounds(thread.gate, 1));
  assert.equal(payloadWord(target, 0, 0), 1, 'the step would have read foreign bytes');
  assert.equal(check(), TAG_WRONG_OWNER);
  await thread.stop();
});

test('while another thread writes without pause, two checks that pass vouch for every byte read between them', async () => {
  const target = newPool(1);
  const registrations = new RegistrationTable(1);
  const handle = registrations.register(2)!;
  const job = {
    kind: 'land-in-loop' as const,
    target: target.descriptor(),
    registrations: registrations.buffer,
    handle,
  };
  const thread = await startThread(job);
  const guard = new ReadGuard();
  const writers: LeaseIdentity = { ...OWN, slot: 9 };
  const check = (): TagVerdict => guard.check(target, Int32Array.of(0), Int32Array.of(5), 1, writers, 16);
  Atomics.store(thread.gate, GO, 1);
  Atomics.notify(thread.gate, GO);
  assert.ok(awaitRounds(thread.gate, 5));
  const lastWord = target.geometry.payloadBytes / 4 - 1;
  const step = (): number => Atomics.load(target.words, TAG_WRITTEN_AT_STEP);
  let [agreed, rejected] = [0, 0];
  const torn: number[][] = [];
  for (let i = 0; i < 200_000; i++) {
    const first = check();
    const before = step();
    const [head, tail] = [payloadWord(target, 0, 0), payloadWord(target, 0, lastWord)];
    if (first !== TAG_OWN || check() !== TAG_OWN || step() !== before) rejected++;
    else if (head !== before || tail !== before) torn.push([before, head, tail]);
    else agreed++;
  }
  await thread.stop();
  assert.deepEqual(torn, []);
  assert.ok(agreed > 0 && rejected > 0, `the threads met: ${agreed} agreed, ${rejected} rejected`);
});
