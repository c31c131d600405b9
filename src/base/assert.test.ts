/** Goal: broken rules and operating errors are told apart. Method: throw each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssertionFailure, assert as holds, unreachable } from './assert.js';
import { CodedError, ERROR_TABLE } from './errors.js';

test('an assert that holds is silent, one that does not speaks its words', () => {
  holds(true, 'never said');
  assert.throws(() => holds(false, 'free count went negative'), new AssertionFailure('free count went negative'));
  assert.throws(() => unreachable('x' as never), /cannot happen.*x/);
});

test('a coded error carries its status, its parameter and its cause', () => {
  const cause = new Error('below');
  const error = new CodedError('rate_limit_exceeded', 'words', { param: 'n', retryAfterS: 2, cause });
  assert.deepEqual(
    [error.status, error.param, error.retryAfterS, error.cause, error.message],
    [429, 'n', 2, cause, 'words'],
  );
  assert.equal(new CodedError('usage', 'words').cause, undefined);
});

test('every row of the table is an HTTP error, or none at all', () => {
  for (const [code, { status }] of Object.entries(ERROR_TABLE)) {
    assert.ok(status === 0 || (status >= 400 && status <= 599), code);
  }
});
