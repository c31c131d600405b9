/** Goal: a tenant hears whether a request was at fault or the engine. Method: errors as vLLM 0.32.0 gave them, each in its own words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { vllmError } from './errors.js';

const bad = (message: string) => ({ message, type: 'BadRequestError', param: null, code: 400 });

const errors: [string, number | null, unknown, string | null][] = [
  [
    'a text over the context',
    400,
    bad("This model's maximum context length is 4096 tokens. However, your prompt …"),
    'context_length_exceeded',
  ],
  [
    'a prompt of exactly the context',
    400,
    bad('max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)'),
    'context_length_exceeded',
  ],
  [
    'an output over the context',
    400,
    bad('max_tokens=5000 cannot be greater than max_model_len=4096.'),
    'context_length_exceeded',
  ],
  ['tools without a parser', 400, bad('"auto" tool choice requires --enable-auto-tool-choice'), 'invalid_request'],
  ['a schema that is none', 400, bad('Grammar error: Invalid type: nonsense'), 'invalid_request'],
  ['the same inside a stream', null, bad('Grammar error: Invalid type: nonsense'), 'invalid_request'],
  ['a dead engine', 500, { message: 'EngineCore encountered an issue.', type: 'InternalServerError', code: 500 }, null],
  ['no model of that name', 404, { message: 'The model does not exist.', type: 'NotFoundError', code: 404 }, null],
  ['a word instead of an error', 401, 'Unauthorized', null],
  ['nothing', null, undefined, null],
];

for (const [title, status, error, code] of errors) {
  test(`${title} means ${code ?? 'no more than that the engine failed'}`, () => {
    assert.equal(vllmError(status, error)?.code ?? null, code);
  });
}
