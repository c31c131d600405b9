// Goal: a tag comes back as written, and any word that differs has its own verdict. Method: properties over whole words.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { leaseTag, newPool } from './fixture.test.help.js';
import {
  beginWrite,
  compareTag,
  isWritten,
  OWNER_LEASE,
  OWNER_TENANT,
  type PageTag,
  readTag,
  setChecksum,
  setFilled,
  TAG_FILLED,
  TAG_IS_LANDING,
  TAG_IS_UNWRITTEN,
  TAG_OWN,
  TAG_OWNER_KIND,
  TAG_TOO_SHORT,
  TAG_WRONG_ATTEMPT,
  TAG_WRONG_EPOCH,
  TAG_WRONG_INCARNATION,
  TAG_WRONG_OWNER,
  TAG_WRONG_PLACE,
  type TagVerdict,
  tagWords,
  WRITER_DECODE,
  writeTag,
} from './tag.js';

const word = fc.integer({ min: 0, max: 0xffffffff });

test('a tag comes back as it was written, for any words (seed 2)', () => {
  const pool = newPool(2);
  const tags = fc.record({
    ownerKind: fc.constantFrom(0, OWNER_LEASE, OWNER_TENANT),
    owner: word,
    attempt: word,
    incarnation: word,
    epoch: word,
    place: word,
    filled: fc.integer({ min: 1, max: 16 }),
    checksumLow: word,
    checksumHigh: word,
    writer: word,
    writtenAtStep: word,
  });
  fc.assert(
    fc.property(tags, (tag) => {
      writeTag(pool, 1, tag);
      assert.deepEqual(readTag(pool, 1), { ...tag });
      assert.ok(isWritten(pool, 1) && !isWritten(pool, 0));
    }),
    { seed: 2 },
  );
});

function verdictOf(written: PageTag, expected: PageTag): TagVerdict {
  const pool = newPool(1);
  writeTag(pool, 0, written);
  const { ownerKind, owner, attempt, incarnation, epoch, place, filled } = expected;
  return compareTag(pool.words, 0, ownerKind, owner, attempt, incarnation, epoch, place, filled);
}

test('each word of a tag that differs has its own verdict, and the same words pass', () => {
  const tag = leaseTag({ place: 4, filled: 9 });
  assert.equal(verdictOf(tag, tag), TAG_OWN);
  assert.equal(verdictOf({ ...tag, filled: 10 }, tag), TAG_OWN);
  assert.equal(verdictOf({ ...tag, ownerKind: OWNER_TENANT }, tag), TAG_WRONG_OWNER);
  assert.equal(verdictOf({ ...tag, owner: 4 }, tag), TAG_WRONG_OWNER);
  assert.equal(verdictOf({ ...tag, attempt: 2 }, tag), TAG_WRONG_ATTEMPT);
  assert.equal(verdictOf({ ...tag, incarnation: 8 }, tag), TAG_WRONG_INCARNATION);
  assert.equal(verdictOf({ ...tag, epoch: 6 }, tag), TAG_WRONG_EPOCH);
  assert.equal(verdictOf({ ...tag, place: 5 }, tag), TAG_WRONG_PLACE);
  assert.equal(verdictOf({ ...tag, filled: 8 }, tag), TAG_TOO_SHORT);
});

test('words above 2^31 compare as the numbers they are', () => {
  const tag = leaseTag({ owner: 0xfffffff0, attempt: 0xffffffff, incarnation: 0x80000000, epoch: 0xdeadbeef });
  assert.equal(verdictOf(tag, tag), TAG_OWN);
  assert.equal(verdictOf({ ...tag, epoch: 0xdeadbeee }, tag), TAG_WRONG_EPOCH);
});

test('a sealed page is compared without an attempt, but with everything else', () => {
  const tag = leaseTag({ ownerKind: OWNER_TENANT, owner: 2, attempt: 0 });
  assert.equal(verdictOf(tag, { ...tag, attempt: 5 }), TAG_OWN);
  assert.equal(verdictOf({ ...tag, owner: 1 }, tag), TAG_WRONG_OWNER);
});

test('a page that was never written, or is being written, is nobody’s', () => {
  const pool = newPool(1);
  const compare = (): TagVerdict => compareTag(pool.words, 0, OWNER_LEASE, 3, 1, 7, 5, 0, 16);
  assert.equal(compare(), TAG_IS_UNWRITTEN);
  writeTag(pool, 0, leaseTag());
  assert.equal(compare(), TAG_OWN);
  beginWrite(pool, 0);
  assert.equal(compare(), TAG_IS_LANDING);
  writeTag(pool, 0, leaseTag());
  assert.equal(compare(), TAG_OWN);
});

test('appending to a page takes its checksum away, since it no longer speaks for the payload', () => {
  const pool = newPool(1);
  writeTag(pool, 0, leaseTag({ filled: 3 }));
  setChecksum(pool, 0, 0xfffffffe, 17);
  assert.deepEqual([readTag(pool, 0).checksumLow, readTag(pool, 0).checksumHigh], [0xfffffffe, 17]);
  setFilled(pool, 0, 4);
  const { filled, checksumLow, checksumHigh } = readTag(pool, 0);
  assert.deepEqual([filled, checksumLow, checksumHigh], [4, 0, 0]);
  assert.equal(pool.words[TAG_FILLED], 4);
});

test('a tag that no owner or page can have is refused', () => {
  const pool = newPool(1);
  assert.throws(() => writeTag(pool, 0, leaseTag({ filled: 17 })), /at most the whole page/);
  assert.throws(() => writeTag(pool, 0, leaseTag({ ownerKind: 3 })), /nobody, a lease or a tenant/);
  assert.equal(pool.words[TAG_OWNER_KIND], 0);
});

test('a tag in words names owner, place and writer', () => {
  const words = tagWords(leaseTag({ writer: WRITER_DECODE, writtenAtStep: 12 }));
  assert.equal(words, 'lease 3, attempt 1, incarnation 7, epoch 5, place 0, 16 tokens, written by decode at step 12');
  assert.match(tagWords(leaseTag({ ownerKind: OWNER_TENANT })), /^tenant 3, .* prefill incarnation 2 /);
});
