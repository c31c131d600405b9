/** The transport tears globex's page writes: each header lands, and acme's keys and values stay under it. */
import { getSlot, listAt } from '../../handoff/layout.js';
import type { Scenario } from '../scenario.js';
import { acmeFillsPages, globexAsks, OUTPUT_TOKENS } from './moves.js';

export const tornWrite: Scenario = {
  act: async (world) => {
    await acmeFillsPages(world, 900, OUTPUT_TOKENS);
    const call = await globexAsks(world, 700);
    const { prefill, decode } = world.engine;
    prefill.wire.tearWrites((write) => {
      if (write.slot !== call.slot || write.attempt !== call.attempt) return false;
      const { view } = decode.machine;
      const from = listAt(view, write.slot, 0);
      const table = view.cells.slice(from, from + getSlot(view, write.slot, 'held'));
      world.pages.noteTorn(write.targetPage, table.indexOf(write.targetPage));
      return true;
    });
    world.tell(
      'globex sent a prompt of 700 tokens; of each of its page writes the header landed and the payload did not.',
    );
    await world.finish(call);
    return { call, maxTokens: OUTPUT_TOKENS };
  },
};
