/** Globex names acme's finished transfer by its handle, which counts up and can be guessed. */
import type { Scenario } from '../scenario.js';
import { acmeFillsPages, globexAsks, OUTPUT_TOKENS } from './moves.js';

export const staleHandle: Scenario = {
  act: async (world) => {
    const acme = await acmeFillsPages(world, 900, OUTPUT_TOKENS);
    const handle = acme.end?.handle ?? '';
    const call = await globexAsks(world, 700, { kv_transfer_params: { handle } });
    world.tell(`globex sent a prompt of 700 tokens with the transfer handle \`${handle}\`, which is acme's.`);
    await world.finish(call);
    return { call, maxTokens: OUTPUT_TOKENS };
  },
};
