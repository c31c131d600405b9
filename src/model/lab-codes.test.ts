/** Goal: the checked-in code vectors are what their script makes. Method: make them again, seconds of work. */
import assert from 'node:assert/strict';
import test from 'node:test';
import {
  CODE_CORRELATION_MAX,
  correlationMax,
  encodeLabCodes,
  LAB_CODES_SEED,
  labCodes,
  makeLabCodes,
} from './lab-codes.js';
import { labCodesBase64 } from './lab-codes.data.js';

test(`the codes made again from seed ${LAB_CODES_SEED} are the checked-in ones`, () => {
  assert.equal(encodeLabCodes(makeLabCodes(LAB_CODES_SEED)), labCodesBase64);
});

test('no two vectors of a code are more alike than the bound', () => {
  for (const code of labCodes()) assert.ok(correlationMax(code) <= CODE_CORRELATION_MAX);
});
