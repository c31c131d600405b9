/** The same prompts through llama.cpp and through the engine's model; greedy tokens side by side. */
import { Prng } from '../../src/base/prng.js';
import { newRole, prefillAll, type Role } from '../../src/model/fixture.test.help.js';
import { loadLabWeights } from '../../src/model/lab-weights.js';
import { greedy } from '../../src/model/sampler.js';
import type { DecodeItem } from '../../src/model/model.js';
import type { LlamaSequence } from './packages.js';
import { type OraclePrompt, oraclePrompt } from './prompts.js';

/** Greedy tokens of an answer. */
export const ANSWER_TOKENS = 32;
/** Streams that our model decodes in one batch. */
const STREAMS = 8;
/** Pages of one stream: 4,000 tokens and an answer. */
const STREAM_PAGES = 256;

export interface Answer {
  readonly tokens: readonly number[];
  /** Nats by which each token led the next. */
  readonly leads: readonly number[];
}

export interface Compared {
  readonly seed: number;
  readonly prompt: OraclePrompt;
  readonly reference: Answer;
  readonly ours: readonly number[];
}

/** llama.cpp's answer: temperature zero, no end. */
export async function referenceAnswer(sequence: LlamaSequence, ids: Int32Array): Promise<Answer> {
  const tokens: number[] = [];
  const leads: number[] = [];
  await sequence.clearHistory();
  const steps = sequence.evaluateWithMetadata(
    [...ids],
    { probabilities: true },
    { temperature: 0, yieldEogToken: true },
  );
  for await (const { token, probabilities } of steps) {
    const [first, second] = [...probabilities].slice(0, 2);
    if (first === undefined || second === undefined || first[0] !== token) throw new Error('no probabilities came');
    tokens.push(token);
    leads.push(Math.log(first[1] / second[1]));
    if (tokens.length === ANSWER_TOKENS) break;
  }
  return { tokens, leads };
}

export class OurModel {
  readonly #role: Role = newRole({ weights: loadLabWeights(), pages: STREAMS * STREAM_PAGES });

  /** Prefilled one by one, decoded together, over pages in any order. */
  answers(prompts: readonly OraclePrompt[], chance: Prng): number[][] {
    const { model } = this.#role;
    const order = chance.shuffle(Array.from({ length: STREAMS * STREAM_PAGES }, (_, page) => page));
    const streams = prompts.map(({ ids }, index) => {
      const pages = Int32Array.from(order.slice(index * STREAM_PAGES, (index + 1) * STREAM_PAGES));
      const chunk = chance.pick([256, 100, 16, 255]);
      return { ids, pages, tokens: [greedy(prefillAll(model, ids, pages, chunk))] };
    });
    while (streams[0]!.tokens.length < ANSWER_TOKENS) {
      const batch: DecodeItem[] = streams.map(({ ids, pages, tokens }) => ({
        token: tokens.at(-1)!,
        position: ids.length + tokens.length - 1,
        pages,
      }));
      const logits = model.decode(batch);
      const { vocab } = model.config;
      for (const [row, { tokens }] of streams.entries()) {
        tokens.push(greedy(logits.subarray(row * vocab, (row + 1) * vocab)));
      }
    }
    return streams.map(({ tokens }) => tokens);
  }
}

/** Steps before the first at which the reference leads by less than `nats`. */
export function clearSteps({ leads }: Answer, nats: number): number {
  const at = leads.findIndex((lead) => lead < nats);
  return at < 0 ? leads.length : at;
}

export interface CompareOptions {
  readonly sequence: LlamaSequence;
  readonly firstSeed: number;
  /** Prompts wanted in which the reference leads by `nats` at every step. */
  readonly clear: number;
  readonly nats: number;
  /** Prompts tried for them. */
  readonly promptsMax: number;
}

/** Compares prompt after prompt until enough are clear. */
export async function compare(options: CompareOptions): Promise<Compared[]> {
  const ours = new OurModel();
  const compared: Compared[] = [];
  let clear = 0;
  while (clear < options.clear && compared.length < options.promptsMax) {
    const first = options.firstSeed + compared.length;
    const seeds = Array.from({ length: STREAMS }, (_, index) => first + index);
    const prompts = seeds.map(oraclePrompt);
    const answers = ours.answers(prompts, new Prng(first));
    for (const [index, prompt] of prompts.entries()) {
      const reference = await referenceAnswer(options.sequence, prompt.ids);
      compared.push({ seed: seeds[index]!, prompt, reference, ours: answers[index]! });
      if (clearSteps(reference, options.nats) === reference.tokens.length) clear++;
    }
  }
  return compared;
}
