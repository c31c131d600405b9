/** Goal: a 63-bit number of a body is read without loss. Method: examples of where a name may stand, then random bodies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { numberAsWritten } from './number-as-written.js';

const SEED = Number(process.env.SEED ?? 63);
const read = (text: string): string | null => numberAsWritten(Buffer.from(text), 'room');

test('only a top-level field of that name counts, and the last one of several', () => {
  assert.equal(read('{"room":9223372036854775807}'), '9223372036854775807');
  assert.equal(read('{ "a" : [{"room":1}], "room" :\n 4734466048905486421 , "b":{"room":2} }'), '4734466048905486421');
  assert.equal(read('{"text":"\\"room\\":7","room":8}'), '8');
  assert.equal(read('{"other":"room","room":5}'), '5');
  assert.equal(read('{"room":1,"room":2}'), '2');
  assert.equal(read('{"text":"back\\\\","room":3}'), '3');
});

test('what is no whole number of at most 19 digits is not read', () => {
  for (const value of ['null', '"5"', '1.5', '1e3', '-4', '12345678901234567890', '[5]', '{"room":5}', 'true']) {
    assert.equal(read(`{"room":${value}}`), null, value);
  }
  assert.equal(read('{"x":{"room":5}}'), null);
});

test(`any 63-bit number is read exactly, whatever stands around it (seed ${SEED})`, () => {
  const around = fc.dictionary(
    fc.string().filter((name) => name !== 'room'),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(around, around, fc.bigInt(0n, 2n ** 63n - 1n), (before, after, room) => {
      const [first, last] = [before, after].map((fields) => JSON.stringify(fields).slice(1, -1));
      const body = `{${[first, `"room":${room}`, last].filter((part) => part !== '').join(',')}}`;
      assert.equal(read(body), String(room));
    }),
    { seed: SEED },
  );
});
