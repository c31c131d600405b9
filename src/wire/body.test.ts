/** Goal: a body is bounded in what it costs, not only in bytes. Method: bodies at a bound and one beyond it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { beyondBounds, JSON_DEPTH_MAX, JSON_VALUES_MAX, parseJsonObject } from './body.js';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('the bounds of a body', () => {
  test('millions of empty arrays are refused before anything of them is built', () => {
    const body = bytes(`{"metadata":{"a":[${'[],'.repeat(2_000_000)}[]]}}`);
    assert.throws(() => parseJsonObject(body), {
      code: 'invalid_json',
      message: `Expected JSON of at most ${JSON_VALUES_MAX} values, got more.`,
    });
  });

  test('a list one value beyond the bound is refused, and one at the bound is not', () => {
    const bounds = { depthMax: 8, valuesMax: 4 };
    assert.equal(beyondBounds(bytes('[1,2,3,4]'), bounds), null);
    assert.equal(beyondBounds(bytes('[1,2,3,4,5]'), bounds), 'values');
    assert.equal(beyondBounds(bytes('[{},{}]'), bounds), null);
    assert.equal(beyondBounds(bytes('[{},{},1]'), bounds), 'values');
  });

  test('commas and brackets inside texts count for nothing', () => {
    const text = JSON.stringify({ prompt: `",[{\\"${',[{'.repeat(JSON_VALUES_MAX)}` });
    assert.deepEqual(Object.keys(parseJsonObject(bytes(text))), ['prompt']);
  });

  test('depth is refused one beyond the bound', () => {
    const nested = (levels: number): Buffer => bytes('['.repeat(levels) + ']'.repeat(levels));
    const bounds = { depthMax: JSON_DEPTH_MAX, valuesMax: JSON_VALUES_MAX };
    assert.equal(beyondBounds(nested(JSON_DEPTH_MAX), bounds), null);
    assert.equal(beyondBounds(nested(JSON_DEPTH_MAX + 1), bounds), 'depth');
  });
});
