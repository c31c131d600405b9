/** Prefill stops after its first chunk of 256 tokens and says so; the pages behind are the last owner's. */
import type { Scenario } from '../scenario.js';
import { acmeFillsPages, globexAsks, OUTPUT_TOKENS } from './moves.js';

/** Acme's own prompt fits one chunk, so that the fault lets it be; a long answer fills the pages. */
const ONE_CHUNK = 250;
const LONG_ANSWER = 600;

export const countUnchecked: Scenario = {
  act: async (world) => {
    await acmeFillsPages(world, ONE_CHUNK, LONG_ANSWER);
    const call = await globexAsks(world, 700);
    world.tell('globex sent a prompt of 700 tokens, and prefill completed it after the first 256.');
    await world.finish(call);
    return { call, maxTokens: OUTPUT_TOKENS };
  },
};
