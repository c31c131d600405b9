/** Goal: what comes from outside cannot move a terminal, nor fill one. Method: examples and properties. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { escapeControl, fingerprint, shown, truncate } from './text.js';

test('escape sequences, line breaks and bidi overrides come out as text', () => {
  assert.equal(escapeControl('a\u001b[2Jb\r\nc\u202ed\u0007'), 'a\\u001b[2Jb\\u000d\\u000ac\\u202ed\\u0007');
  assert.equal(escapeControl('a\ud800b\uffffc\u{e0041}d\u00ade\u3164'), 'a\\ud800b\\uffffc\\u{e0041}d\\u00ade\\u3164');
  assert.equal(escapeControl('plain, ünïcödé, 漢字 🙂'), 'plain, ünïcödé, 漢字 🙂');
});

test('no control or format character survives, and escaping twice changes nothing (seed 31)', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const escaped = escapeControl(text);
      assert.doesNotMatch(escaped, /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufffe\uffff]/u);
      assert.equal(escapeControl(escaped), escaped);
    }),
    { seed: 31 },
  );
});

test('truncation keeps to its bound and shows that it cut', () => {
  assert.equal(truncate('abc', 3), 'abc');
  assert.equal(truncate('abcd', 3), 'ab…');
  assert.equal(truncate('abcd', 0), '…');
});

test('a fingerprint is the first 12 hex digits of SHA-256', () => {
  assert.equal(fingerprint('abc'), 'ba7816bf8f01');
  assert.equal(fingerprint(new TextEncoder().encode('abc')), 'ba7816bf8f01');
});

test('what came is shown short, escaped and with its type', () => {
  assert.equal(shown('a\nb'), '`a\\u000ab`');
  assert.equal(shown('x'.repeat(100)).length, 42);
  assert.equal(shown(12), '`12`');
  assert.equal(shown(null), '`null`');
  assert.equal(shown(undefined), 'nothing');
  assert.equal(shown([1]), 'an array');
  assert.equal(shown({ secret: 1 }), 'a value of type object');
});
