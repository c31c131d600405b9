/** Goal: sizes are read as people mean them, or not at all. Method: examples at the edges. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLoopback } from './loopback.js';
import { isPowerOfTwo, parseCount } from './units.js';

test('suffixes are powers of 1024, small or capital', () => {
  assert.equal(parseCount('128k'), 131072);
  assert.equal(parseCount('128K'), 131072);
  assert.equal(parseCount('1M'), 1048576);
  assert.equal(parseCount('2g'), 2147483648);
  assert.equal(parseCount('0'), 0);
  assert.equal(parseCount('007'), 7);
});

test('what is no whole number is refused', () => {
  for (const text of [
    '',
    'k',
    '-1',
    '1.5k',
    '1e3',
    '0x10',
    ' 1',
    '1 k',
    '1kk',
    '9007199254740993',
    '999999999999999g',
  ]) {
    assert.equal(parseCount(text), null, text);
  }
});

test('powers of two are told from their neighbours', () => {
  assert.deepEqual([1, 2, 8, 256, 2 ** 40].map(isPowerOfTwo), [true, true, true, true, true]);
  assert.deepEqual([0, -2, 3, 12, 255, 0.5, Number.NaN].map(isPowerOfTwo), Array(7).fill(false));
});

test('only addresses of this machine count as loopback', () => {
  for (const host of ['127.0.0.1', '127.9.9.9', 'localhost', 'LOCALHOST', '::1', '[::1]', '::ffff:127.0.0.1']) {
    assert.ok(isLoopback(host), host);
  }
  for (const host of [
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '127.0.0.1.example.org',
    'example.org',
    '',
    '127.1',
    '::ffff:10.0.0.1',
  ]) {
    assert.ok(!isLoopback(host), host);
  }
});
