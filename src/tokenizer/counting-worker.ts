/** A thread that counts: gets the tokenizer once, then one text after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../base/assert.js';
import { CannotSplit } from './automaton.js';
import type { CountAnswer, CountRequest } from './counting-messages.js';
import { newTextTokenizer, type TextTokenizer, type TokenizerPlan } from './text-tokenizer.js';

function answer(tokenizer: TextTokenizer, { text, isWhole }: CountRequest): CountAnswer {
  try {
    return { count: tokenizer.count(text, isWhole) };
  } catch (thrown) {
    if (thrown instanceof CannotSplit) return { why: thrown.message };
    throw thrown;
  }
}

assert(parentPort !== null, 'counting-worker runs on a thread of its own');
const port = parentPort;
const tokenizer = newTextTokenizer(workerData as TokenizerPlan);
port.on('message', (request: CountRequest) => port.postMessage(answer(tokenizer, request)));
