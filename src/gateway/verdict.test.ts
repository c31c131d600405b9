/** Goal: counts are judged by what was said, and by nothing that was not. Method: the pure function over each way to say less. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exactly, judgeCounts } from './verdict.js';

test('where decode has not said its count yet, prefill is judged alone: the count of 1 is seen before any text', () => {
  assert.equal(judgeCounts(exactly(2042), { promptTokens: null, prefillTokens: 1 }), 'short');
  assert.equal(judgeCounts(exactly(2042), { promptTokens: null, prefillTokens: 2040 }), 'drift');
  assert.equal(judgeCounts(exactly(2042), { promptTokens: null, prefillTokens: 2042 }), 'agrees');
  assert.equal(judgeCounts(exactly(2042), { promptTokens: 2042, prefillTokens: 1 }), 'roles');
  assert.equal(judgeCounts(exactly(2042), { promptTokens: null, prefillTokens: null }), 'nonsense');
});
