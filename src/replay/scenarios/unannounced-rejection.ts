/** Prefill refuses globex's over-long prompt and decode is not told; then acme's ordinary request finds no pages. */
import type { Scenario } from '../scenario.js';
import { globexAsks, OUTPUT_TOKENS } from './moves.js';

const PREFILL_POOL = 1024;
const OVER_LONG = 1200;

export const unannouncedRejection: Scenario = {
  sizes: { prefillPool: PREFILL_POOL, decodePool: 2048 },
  act: async (world) => {
    const globex = await globexAsks(world, OVER_LONG);
    await world.finish(globex);
    world.tell(
      `globex sent a prompt of ${OVER_LONG} tokens to a prefill pool of ${PREFILL_POOL}, and was refused with ${globex.answer?.status ?? 'nothing'}.`,
    );
    const acme = await world.send('acme', world.prompts.acme(800), { maxTokens: OUTPUT_TOKENS });
    const isServed = await world.finish(acme);
    const { free } = world.engine.coordinator.stats().decodePages;
    world.tell(
      isServed
        ? "acme's ordinary prompt of 800 tokens was served afterwards."
        : `acme's ordinary prompt of 800 tokens waits for pages that nobody gives back: ${free} are free.`,
    );
    return { call: isServed ? globex : acme, maxTokens: OUTPUT_TOKENS };
  },
};
