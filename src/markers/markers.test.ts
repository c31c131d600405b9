/** Goal: every piece of a marker is recognised, and nothing else. Method: a plain search over all stretches as the oracle. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { Prng } from '../base/prng.js';
import { base32, enumerateMarkers, MARKER_ALPHABET, MARKER_CHARACTERS, type Marker, makeMarker } from './marker.js';
import { HIT_CHARACTERS_MIN, isMarkerText, type MarkerHit, MarkerIndex, mergeHits } from './marker-index.js';

const SECRET = Buffer.alloc(32, 7);
const MARKERS = enumerateMarkers(SECRET, ['acme', 'globex'], ['2026-11'], 2);
const INDEX = new MarkerIndex(MARKERS);

test('base32 is that of RFC 4648, in lower case and without padding', () => {
  const vectors = {
    '': '',
    f: 'my',
    fo: 'mzxq',
    foo: 'mzxw6',
    foob: 'mzxw6yq',
    fooba: 'mzxw6ytb',
    foobar: 'mzxw6ytboi',
  };
  for (const [plain, coded] of Object.entries(vectors)) assert.equal(base32(Buffer.from(plain)), coded);
});

test('a marker is `KVC-` and the first 128 bits of an HMAC, and the same every time', () => {
  const marker = makeMarker(SECRET, 'acme', '2026-11', 0);
  const hmac = createHmac('sha256', SECRET).update('["cofferdam marker 1","acme","2026-11",0]').digest();
  assert.equal(marker.text, `KVC-${base32(hmac.subarray(0, 16))}`);
  assert.match(marker.text, /^KVC-[a-z2-7]{25}[aeimquy4]$/);
  assert.equal(marker.text.length, MARKER_CHARACTERS);
  assert.deepEqual(makeMarker(SECRET, 'acme', '2026-11', 0), marker);
});

test('owner, period, index and secret each make another marker, also where they run together', () => {
  const texts = [
    makeMarker(SECRET, 'acme', '2026-11', 0),
    makeMarker(SECRET, 'acme', '2026-11', 1),
    makeMarker(SECRET, 'acme', '2026-1', 10),
    makeMarker(SECRET, 'acme2', '026-11', 0),
    makeMarker(SECRET, 'acme","2026-11', '', 0),
    makeMarker(Buffer.alloc(32, 8), 'acme', '2026-11', 0),
  ].map(({ text }) => text);
  assert.equal(new Set(texts).size, texts.length);
  assert.throws(() => makeMarker(Buffer.alloc(15), 'acme', '2026-11', 0), /at least 16 bytes/);
  assert.throws(() => makeMarker(SECRET, 'acme', '2026-11', -1), /from zero up/);
});

test('the markers of a secret can be written down again, in order', () => {
  const markers = enumerateMarkers(SECRET, ['a', 'b'], ['p', 'q'], 3);
  assert.deepEqual(
    markers.slice(0, 4).map(({ owner, period, index }) => `${owner}${period}${index}`),
    ['ap0', 'ap1', 'ap2', 'aq0'],
  );
  assert.equal(new Set(markers.map(({ text }) => text)).size, 12);
});

/** Every maximal agreement of at least 12 characters, by comparing everything with everything. */
function plainHits(text: string, markers: readonly Marker[]): MarkerHit[] {
  const hits: MarkerHit[] = [];
  for (const marker of markers) {
    for (let shift = -MARKER_CHARACTERS; shift < text.length; shift++) {
      let run = 0;
      for (let offset = 0; offset <= MARKER_CHARACTERS; offset++) {
        const same = offset < MARKER_CHARACTERS && text[shift + offset] === marker.text[offset];
        if (same) run++;
        else {
          if (run >= HIT_CHARACTERS_MIN) {
            hits.push({ marker, markerOffset: offset - run, textOffset: shift + offset - run, length: run });
          }
          run = 0;
        }
      }
    }
  }
  return hits.sort(byPlace);
}

const byPlace = (a: MarkerHit, b: MarkerHit): number =>
  a.textOffset - b.textOffset || (a.marker.text < b.marker.text ? -1 : 1);

test('any 12 characters of a marker are recognised, 11 are not', () => {
  const marker = MARKERS[2]!;
  for (let offset = 0; offset + HIT_CHARACTERS_MIN <= MARKER_CHARACTERS; offset++) {
    for (let shift = 0; shift < 9; shift++) {
      const before = '.'.repeat(shift);
      const piece = marker.text.slice(offset, offset + HIT_CHARACTERS_MIN);
      assert.deepEqual(INDEX.scanText(`${before}${piece} and on`), [
        { marker, markerOffset: offset, textOffset: shift, length: HIT_CHARACTERS_MIN },
      ]);
      assert.deepEqual(INDEX.scanText(`${before}${piece.slice(1)} and on`), []);
      assert.deepEqual(INDEX.scanText(`${before}${piece.slice(0, -1)}# and on`), []);
    }
  }
});

test('the prefix alone, many times over, is no hit', () => {
  assert.deepEqual(INDEX.scanText('KVC-KVC-KVC-KVC-KVC-KVC-'), []);
  assert.deepEqual(INDEX.scanText(`KVC-${MARKERS[0]!.text.slice(4, 11)}#`), []);
});

/** Text made of what is hard: pieces of markers, their letters, other letters. */
const hardText = fc
  .array(
    fc.oneof(
      fc
        .tuple(fc.nat(MARKERS.length - 1), fc.nat(MARKER_CHARACTERS), fc.nat(MARKER_CHARACTERS))
        .map(([at, from, length]) => MARKERS[at]!.text.slice(from, from + length)),
      fc.string({ unit: fc.constantFrom(...MARKER_ALPHABET.split(''), 'K', '-'), maxLength: 6 }),
      fc.string({ unit: 'binary', maxLength: 4 }),
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(''));

test('it finds what comparing everything with everything finds, whole and in any chunks (seed 51)', () => {
  fc.assert(
    fc.property(hardText, fc.array(fc.nat(14), { maxLength: 40 }), (text, cuts) => {
      const expected = plainHits(text, MARKERS);
      assert.deepEqual(INDEX.scanText(text).sort(byPlace), expected);
      const scanner = INDEX.scanner();
      const hits: MarkerHit[] = [];
      let at = 0;
      for (const cut of [...cuts, text.length]) {
        hits.push(...scanner.scan(text.slice(at, at + cut)));
        at = Math.min(text.length, at + cut);
      }
      assert.deepEqual(mergeHits(hits).sort(byPlace), expected);
      assert.equal(scanner.length, text.length);
    }),
    { seed: 51, numRuns: 600 },
  );
});

/** How much of the end can still grow into a hit, by trying every end against every marker. */
function plainHoldBack(text: string): number {
  for (let length = Math.min(text.length, MARKER_CHARACTERS - 1); length > 0; length--) {
    const end = text.slice(-length);
    for (const marker of MARKERS) {
      for (let offset = 0; offset <= MARKER_CHARACTERS - HIT_CHARACTERS_MIN; offset++) {
        if (offset + length < MARKER_CHARACTERS && marker.text.startsWith(end, offset)) return length;
      }
    }
  }
  return 0;
}

test('what is held back is exactly what can still become part of a hit (seed 52)', () => {
  fc.assert(
    fc.property(hardText, fc.nat(30), (text, cut) => {
      const scanner = INDEX.scanner();
      scanner.scan(text.slice(0, cut));
      assert.equal(scanner.holdBack, plainHoldBack(text.slice(0, cut)));
      scanner.scan(text.slice(cut));
      assert.equal(scanner.holdBack, plainHoldBack(text));
    }),
    { seed: 52, numRuns: 600 },
  );
});

test('a guard that holds back lets no character of a hit out, one character at a time', () => {
  const marker = MARKERS[1]!;
  const text = `so the code is ${marker.text.slice(5, 25)} and more`;
  const scanner = INDEX.scanner();
  let out = '';
  let held = '';
  for (const char of text) {
    if (scanner.scan(char).length > 0) break;
    held += char;
    out += held.slice(0, held.length - scanner.holdBack);
    held = held.slice(held.length - scanner.holdBack);
  }
  assert.equal(out, 'so the code is ');
});

test('a hit that goes on comes again, longer, and merges into one', () => {
  const marker = MARKERS[3]!;
  const scanner = INDEX.scanner();
  const first = scanner.scan(`x ${marker.text.slice(0, 14)}`);
  const second = scanner.scan(`${marker.text.slice(14)} y`);
  assert.deepEqual([first[0]?.length, second[0]?.length, second[0]?.textOffset], [14, 30, 2]);
  assert.deepEqual(mergeHits([...first, ...second]), [{ marker, markerOffset: 0, textOffset: 2, length: 30 }]);
  assert.deepEqual(scanner.scan('z'), []);
});

test('ten thousand markers are all found in chunks of 200, and clean text has no hit (seed 53)', () => {
  const owners = Array.from({ length: 1000 }, (_, i) => `tenant-${i}`);
  const markers = enumerateMarkers(SECRET, owners, ['2026-11'], 10);
  const index = new MarkerIndex(markers);
  const prng = new Prng(53);
  const noise = (length: number): string => Array.from({ length }, () => MARKER_ALPHABET[prng.below(32)]).join('');
  const text = markers.map((marker) => `${noise(prng.below(12))} ${marker.text}`).join(' ');
  const scanner = index.scanner();
  const hits: MarkerHit[] = [];
  for (let at = 0; at < text.length; at += 200) hits.push(...scanner.scan(text.slice(at, at + 200)));
  assert.deepEqual(
    mergeHits(hits).map(({ marker }) => marker.text),
    markers.map(({ text: own }) => own),
  );
  assert.deepEqual(index.scanText(noise(400_000)), []);
});

test('only markers can be live', () => {
  assert.ok(isMarkerText(MARKERS[0]!.text));
  for (const text of ['', 'KVC-', MARKERS[0]!.text.toUpperCase(), `${MARKERS[0]!.text}a`, `XVC-${'a'.repeat(26)}`]) {
    assert.ok(!isMarkerText(text), text);
    assert.throws(() => new MarkerIndex([{ text, owner: 'a', period: 'p', index: 0 }]), /must be `KVC-`/);
  }
  assert.deepEqual(new MarkerIndex([]).scanText('anything'), []);
});
