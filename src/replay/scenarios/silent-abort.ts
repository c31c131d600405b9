/** Prefill fails after its first chunk of 256 tokens and reports all of them. */
import type { Scenario } from '../scenario.js';
import { acmeFillsPages, globexAsks, OUTPUT_TOKENS } from './moves.js';

const ONE_CHUNK = 250;
const LONG_ANSWER = 600;

export const silentAbort: Scenario = {
  act: async (world) => {
    await acmeFillsPages(world, ONE_CHUNK, LONG_ANSWER);
    const call = await globexAsks(world, 700);
    world.tell(
      'globex sent a prompt of 700 tokens; prefill failed after the first 256 and reported all 700 as written.',
    );
    await world.finish(call);
    return { call, maxTokens: OUTPUT_TOKENS };
  },
};
