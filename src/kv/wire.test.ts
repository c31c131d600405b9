// Goal: posted writes land when, in the order, and with the bytes that they should. Method: every landing is read from its page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Checksummer } from './checksum.js';
import { type Ends, fillPayload, GEOMETRY, leaseTag, newEnds, payloadWord } from './fixture.test.help.js';
import { PagePool } from './pool.js';
import { newSharedMemory } from '../base/shared-memory.js';
import { readTag, setChecksum, writeTag } from './tag.js';
import { POSTED_WRITES_MAX, type WireOptions } from './wire.js';

/** Posts write `index`: source page and place are the index, to target page `targetPage`. */
function post(ends: Ends, index: number, targetPage = index, attempt = 1, nowMs = 0): boolean {
  const tag = leaseTag({ place: index, attempt, writtenAtStep: index });
  return ends.wire.post({ room: 1n, slot: 3, attempt, sourcePage: index, targetPage, tag }, nowMs);
}

/** The places of the pages that have landed, by target page. */
function landedPages(ends: Ends): number[] {
  return Array.from({ length: ends.target.pages }, (_, page) => page).filter(
    (page) => ends.target.header(page)[0] !== 0,
  );
}

test('without delay, writes land at the next poll in posting order, header and payload together', () => {
  const settled: string[] = [];
  const ends = newEnds({ onSettled: (slot, attempt, outcome) => settled.push(`${slot}.${attempt} ${outcome}`) });
  for (const page of [0, 1, 2]) fillPayload(ends.source, page, 100 + page);
  for (const index of [0, 1, 2]) assert.ok(post(ends, index, index === 2 ? 0 : index));
  assert.deepEqual(landedPages(ends), []);
  assert.equal(ends.wire.inFlight(3, 1), 3);
  assert.equal(ends.wire.poll(0), 3);
  assert.deepEqual(landedPages(ends), [0, 1]);
  assert.equal(readTag(ends.target, 0).place, 2, 'the later write to a page is the one that stays');
  assert.equal(payloadWord(ends.target, 0, 511), 102);
  assert.deepEqual(readTag(ends.target, 1), leaseTag({ place: 1, writtenAtStep: 1 }));
  assert.deepEqual(settled, ['3.1 landed', '3.1 landed', '3.1 landed']);
  assert.deepEqual([ends.wire.inFlight(3, 1), ends.wire.waiting, ends.wire.landed, ends.wire.refused], [0, 0, 3, 0]);
});

test('the payload is read when it lands, the tag when it is posted', () => {
  const ends = newEnds();
  const tag = leaseTag();
  fillPayload(ends.source, 0, 1);
  ends.wire.post({ room: 1n, slot: 3, attempt: 1, sourcePage: 0, targetPage: 0, tag }, 0);
  tag.epoch = 99;
  fillPayload(ends.source, 0, 2);
  ends.wire.poll(0);
  assert.equal(payloadWord(ends.target, 0, 5), 2);
  assert.equal(readTag(ends.target, 0).epoch, 5);
});

interface Landing {
  readonly index: number;
  readonly atMs: number;
}

/** Posts sixteen writes, one a millisecond, polls ten times a millisecond, and says what landed when. */
function landings(options: Partial<WireOptions>): Landing[] {
  const seen: Landing[] = [];
  const ends = newEnds({ ...options });
  for (let tick = 0; tick < 1_000; tick++) {
    const nowMs = tick / 10;
    if (tick % 10 === 0 && tick < 160) post(ends, tick / 10, tick / 10, 1, nowMs);
    ends.wire.poll(nowMs);
    for (const page of landedPages(ends)) {
      if (!seen.some(({ index }) => index === page)) seen.push({ index: page, atMs: nowMs });
    }
  }
  return seen;
}

test('delays lie between their bounds, keep posting order unless reordering is on, and repeat from a seed (seed 7)', () => {
  fc.assert(
    fc.property(fc.integer(), fc.boolean(), (seed, shuffled) => {
      const reorder = shuffled ? { seed } : null;
      const run = (): Landing[] => landings({ delay: { seed, minMs: 2, maxMs: 9 }, reorder });
      const seen = run();
      assert.equal(seen.length, 16);
      for (const { index, atMs } of seen) assert.ok(atMs >= index + 2 && atMs <= index + 9.2, `${index} at ${atMs}`);
      const order = seen.map(({ index }) => index);
      if (!shuffled)
        assert.deepEqual(
          order,
          [...order].sort((a, b) => a - b),
        );
      assert.deepEqual(run(), seen);
    }),
    { seed: 7, numRuns: 20 },
  );
});

test('with reordering, writes overtake each other, and each lands once', () => {
  const late = landings({ delay: { seed: 1, minMs: 0, maxMs: 9 }, reorder: { seed: 1 } }).map(({ index }) => index);
  assert.notDeepEqual(
    late,
    [...late].sort((a, b) => a - b),
  );
  const ends = newEnds({ reorder: { seed: 2 } });
  // All to one page: the last to land is the one that is seen, and it is not the last that was posted.
  for (let index = 0; index < 16; index++) post(ends, index, 0);
  assert.equal(ends.wire.poll(0), 16);
  assert.notEqual(readTag(ends.target, 0).place, 15);
});

test('a wire says when its next write is due, held ones apart', () => {
  const ends = newEnds({ delay: { seed: 1, minMs: 5, maxMs: 5 } });
  assert.equal(ends.wire.nextDueMs(), null);
  post(ends, 0, 0, 1, 10);
  assert.equal(ends.wire.nextDueMs(), 15);
  ends.wire.hold(() => true);
  assert.equal(ends.wire.nextDueMs(), null);
});

test('held writes stay until they are released, and others pass them', () => {
  const ends = newEnds();
  const second = ({ attempt }: { attempt: number }): boolean => attempt === 2;
  ends.wire.hold(second);
  ends.wire.hold(({ targetPage }) => targetPage === 3);
  post(ends, 0, 0, 1);
  post(ends, 1, 1, 2);
  post(ends, 3, 3, 1);
  assert.equal(ends.wire.poll(1_000), 1);
  assert.deepEqual(landedPages(ends), [0]);
  assert.deepEqual([ends.wire.inFlight(3, 1), ends.wire.inFlight(3, 2)], [1, 1]);
  ends.wire.release(second);
  ends.wire.poll(1_001);
  assert.deepEqual(landedPages(ends), [0, 1]);
  ends.wire.release();
  ends.wire.poll(1_002);
  assert.deepEqual(landedPages(ends), [0, 1, 3]);
});

test('a torn write brings its header and not its payload: the tag is its own, the checksum is not', () => {
  const memory = newSharedMemory(2 * GEOMETRY.pageBytes);
  const target = new PagePool({ memory, base: 0, pages: 2, geometry: GEOMETRY, node: 'decode' });
  const ends = newEnds({ target });
  const [wanted, got] = [new Uint32Array(2), new Uint32Array(2)];
  const checksummer = new Checksummer(memory);
  fillPayload(target, 0, 77);
  checksummer.page(target, 0, wanted);
  fillPayload(ends.source, 0, 77);
  fillPayload(target, 0, 66);
  const tag = leaseTag({ checksumLow: wanted[0], checksumHigh: wanted[1] });
  const send = (): void => {
    for (const page of [0, 1]) {
      ends.wire.post({ room: 1n, slot: 3, attempt: 1, sourcePage: 0, targetPage: page, tag }, 0);
    }
    ends.wire.poll(0);
  };
  ends.wire.tearWrites(({ targetPage }) => targetPage === 0);
  send();
  assert.deepEqual(readTag(target, 0), tag);
  checksummer.page(target, 0, got);
  assert.notDeepEqual(got, wanted);
  checksummer.page(target, 1, got);
  assert.deepEqual(got, wanted, 'the write that was not chosen is whole');
  assert.deepEqual([ends.wire.torn, ends.wire.landed], [1, 2]);
  ends.wire.tearWrites(null);
  send();
  checksummer.page(target, 0, got);
  assert.deepEqual(got, wanted);
});

test('a full wire takes no more, says so, and takes again when something has landed', () => {
  const ends = newEnds();
  for (let i = 0; i < POSTED_WRITES_MAX; i++) assert.ok(post(ends, i % 16));
  assert.equal(post(ends, 0), false);
  assert.equal(ends.wire.inFlight(3, 1), POSTED_WRITES_MAX);
  assert.equal(ends.wire.poll(0), POSTED_WRITES_MAX);
  assert.equal(post(ends, 0), true);
});

test('writes settle under the registration they were posted under, also when the wire has a new one', () => {
  const outcomes: string[] = [];
  const ends = newEnds({ onSettled: (_slot, attempt, outcome) => outcomes.push(`${attempt} ${outcome}`) });
  post(ends, 0, 0, 1);
  assert.ok(ends.registrations.revoke(ends.handle));
  ends.wire.useRegistration(ends.registrations.register(2)!);
  post(ends, 1, 1, 2);
  ends.wire.poll(0);
  assert.deepEqual(outcomes, ['1 refused', '2 landed']);
  assert.deepEqual(landedPages(ends), [1]);
  assert.deepEqual([ends.wire.landed, ends.wire.refused, ends.wire.inFlight(3, 1)], [1, 1, 0]);
});

test('a landing changes neither its source nor the neighbours of its target', () => {
  const ends = newEnds();
  ends.target.words.fill(-1);
  fillPayload(ends.source, 4, 9);
  writeTag(ends.source, 4, leaseTag({ owner: 1 }));
  setChecksum(ends.source, 4, 1, 2);
  const before = Int32Array.from(ends.source.words);
  post(ends, 4, 5);
  ends.wire.poll(0);
  assert.deepEqual(Int32Array.from(ends.source.words), before);
  ends.target.words.forEach((word, at) => {
    if (Math.floor(at / ends.target.pageWords) !== 5) assert.equal(word, -1);
  });
});

test('a write that names a page outside either pool, or carries no token, is refused when posted', () => {
  const ends = newEnds();
  assert.throws(() => post(ends, 0, 16), /lies in its pool/);
  assert.throws(() => post(ends, 16, 0), /lies in its pool/);
  const tag = leaseTag({ filled: 0 });
  assert.throws(
    () => ends.wire.post({ room: 1n, slot: 3, attempt: 1, sourcePage: 0, targetPage: 0, tag }, 0),
    /with tokens in it/,
  );
  assert.equal(ends.wire.waiting, 0);
});
