/** The public incident: a prompt that prefill can't hold goes on as one token, over whatever lies in decode's pages. */
import type { Scenario } from '../scenario.js';
import { acmeFillsPages, globexAsks, OUTPUT_TOKENS } from './moves.js';

const PREFILL_POOL = 1024;
const OVER_LONG = 1100;

export const rejectedStaysAlive: Scenario = {
  sizes: { prefillPool: PREFILL_POOL },
  act: async (world) => {
    await acmeFillsPages(world, 1000, 200);
    const call = await globexAsks(world, OVER_LONG);
    world.tell(`globex sent a prompt of ${OVER_LONG} tokens to a prefill pool of ${PREFILL_POOL}.`);
    await world.finish(call);
    return { call, maxTokens: OUTPUT_TOKENS };
  },
};
