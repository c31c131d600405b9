// Goal: a lost page, a page counted twice and a header that is not what the ledger says are found. Method: each once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { leaseTag, newPool } from './fixture.test.help.js';
import { everyPageIsCounted, type TagExpectation, tagsAgree } from './integrity.js';
import { beginWrite, OWNER_LEASE, TAG_IS_LANDING, TAG_WRONG_EPOCH, writeTag } from './tag.js';

const POOL = { pages: 100 };

test('counts that make up the pool pass, and one page more or less anywhere does not (seed 8)', () => {
  const share = fc.integer({ min: 1, max: 25 });
  const names = fc.constantFrom('free', 'leased', 'draining', 'sealed', 'total');
  fc.assert(
    fc.property(share, share, share, names, fc.constantFrom(-1, 1), (leased, draining, sealed, name, change) => {
      const counts = { free: 100 - leased - draining - sealed, leased, draining, sealed, total: 100 };
      assert.equal(everyPageIsCounted(counts, POOL), null);
      const wrong = { ...counts, [name]: counts[name as keyof typeof counts] + change };
      assert.match(everyPageIsCounted(wrong, POOL) ?? '', /the pool has 100/);
    }),
    { seed: 8 },
  );
});

test('a count below zero is wrong even where the sum is right', () => {
  const counts = { free: 101, leased: -1, draining: 0, sealed: 0, total: 100 };
  assert.equal(everyPageIsCounted(counts, POOL), 'the count of leased pages is -1');
});

test('the first page of a range whose header disagrees is named, and pages of which nothing is expected are passed', () => {
  const pool = newPool(6);
  for (let page = 0; page < 6; page++) writeTag(pool, page, leaseTag({ place: page, epoch: page === 4 ? 8 : 5 }));
  const expect = (page: number): TagExpectation | null =>
    page === 1
      ? null
      : { ownerKind: OWNER_LEASE, owner: 3, attempt: 1, incarnation: 7, epoch: 5, place: page, filledMin: 16 };
  assert.equal(tagsAgree(pool, 0, 4, expect), null);
  assert.deepEqual(tagsAgree(pool, 0, 100, expect), { page: 4, verdict: TAG_WRONG_EPOCH });
  beginWrite(pool, 1);
  beginWrite(pool, 2);
  assert.deepEqual(tagsAgree(pool, 0, 100, expect), { page: 2, verdict: TAG_IS_LANDING });
});
