/** Goal: events come out whole, wherever their bytes were cut. Method: examples, then every cut of random streams. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SseOverflow, SseReader } from './sse.js';

function read(chunks: readonly Uint8Array[], charactersMax?: number): { data: string[]; cut: boolean } {
  const data: string[] = [];
  const reader = new SseReader((each) => data.push(each), charactersMax);
  for (const chunk of chunks) reader.push(chunk);
  return { data, cut: reader.cut };
}

const bytes = (text: string): Uint8Array => Buffer.from(text, 'utf8');

test('reads events with every line end, comments and other fields left out', () => {
  const text = ': hi\n\ndata: a\n\nevent: x\r\ndata:b\r\ndata: c\r\n\r\ndata\r\rid: 3\n\n';
  assert.deepEqual(read([bytes(text)]).data, ['a', 'b\nc', '']);
});

test('says that an event was cut', () => {
  assert.equal(read([bytes('data: a\n\ndata: b')]).cut, true);
  assert.equal(read([bytes('data: a\n\ndata: b\n')]).cut, true);
  assert.equal(read([bytes('data: a\n\n')]).cut, false);
});

test('throws on an event that never ends, within its bound', () => {
  assert.throws(() => read([bytes(`data: ${'x'.repeat(200)}`)], 100), SseOverflow);
  assert.throws(
    () =>
      read(
        Array.from({ length: 99 }, () => bytes('data: xxx\n')),
        100,
      ),
    SseOverflow,
  );
});

const SEED = 90_210;
test(`gives the same events for any cut of the bytes (seed ${SEED})`, () => {
  const line = fc.constantFrom('data: é', 'data:x', 'data: 😀', ': c', 'id: 1', '', '');
  fc.assert(
    fc.property(
      fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 12 }),
      fc.array(fc.nat(80), { maxLength: 8 }),
      (lines, cuts) => {
        // The next line must not begin with the LF that would join a lone CR.
        const whole = bytes(lines.map(([text, end]) => text + end).join(''));
        const at = [...new Set(cuts.map((cut) => Math.min(cut, whole.length)))].sort((a, b) => a - b);
        const chunks = [0, ...at].map((from, i) => whole.subarray(from, at[i] ?? whole.length));
        assert.deepEqual(read(chunks), read([whole]));
      },
    ),
    { seed: SEED, numRuns: 1000 },
  );
});
