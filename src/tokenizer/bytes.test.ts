/** Goal: text survives the tokenizer, whole characters only. Method: random strings, random splits, hand-made bad bytes. */
import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { countTokens, decode, encode, renderChat, TOKEN_BOS, TOKEN_EOS, TOKEN_PAD, TokenDecoder } from './bytes.js';

const SEED = Number(process.env.SEED ?? 31);

test(`any well-formed text comes back from its tokens, and the count is right (seed ${SEED})`, () => {
  const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }));
  fc.assert(
    fc.property(text, (value) => {
      const ids = encode(value);
      assert.equal(decode(ids), Buffer.from(value, 'utf8').toString('utf8'));
      assert.equal(countTokens(value), ids.length);
    }),
    { seed: SEED, numRuns: 300 },
  );
});

test('no special is ever part of an encoded text', () => {
  assert.deepEqual([...encode('<s></s><pad>')], [...Buffer.from('<s></s><pad>')]);
  assert.equal(decode([TOKEN_BOS, 0x61, TOKEN_EOS, TOKEN_PAD]), 'a');
});

test('a character split over tokens is held back until it is whole', () => {
  const decoder = new TokenDecoder();
  assert.deepEqual(
    [...Buffer.from('é😀')].map((id) => decoder.push(id)),
    ['', 'é', '', '', '', '😀'],
  );
  assert.equal(decoder.end(), '');
});

test('bytes that are no character become U+FFFD, and what follows is read again', () => {
  assert.equal(decode([0xff, 0x61]), '\ufffda');
  assert.equal(decode([0xe2, 0x82, 0x61]), '\ufffda');
  assert.equal(decode([0x61, 0xf0, 0x9f]), 'a\ufffd');
});

test('a byte order mark at the start is kept', () => {
  assert.equal(decode(encode('\ufeffa')), '\ufeffa');
});

test('a NUL byte is a token of its own', () => {
  assert.deepEqual([...encode('a\0b')], [97, 0, 98]);
});

test('the chat template is a line for each message, then the beginning of the answer', () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hello' },
  ];
  assert.equal(renderChat(messages), 'system: Be brief.\nuser: Hello\nassistant: ');
  assert.equal(renderChat([]), 'assistant: ');
});
