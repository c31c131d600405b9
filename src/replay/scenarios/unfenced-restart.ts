/** Prefill dies with acme's writes on the wire; globex gets the pages, and the writes of the dead incarnation land in them. */
import { DecodePhase } from '../../handoff/decode.js';
import type { Scenario } from '../scenario.js';
import { acmeIsInTransfer, globexAsks, OUTPUT_TOKENS } from './moves.js';

export const unfencedRestart: Scenario = {
  act: async (world) => {
    const { engine } = world;
    const acme = await acmeIsInTransfer(world, 800);
    engine.restartPrefill();
    await world.leave(acme);
    world.tell('Prefill died and came back; acme left rather than be tried again.');
    world.settle(acme);
    const call = await globexAsks(world, 800);
    world.run(() => world.decodePhase(call) === DecodePhase.decoding || call.end !== null);
    for (const wire of engine.deadWires) wire.release();
    world.tell(
      'globex sent a prompt of 800 tokens; while it was being answered, the writes of the dead prefill arrived.',
    );
    await world.finish(call);
    const refused = engine.coordinator.stats().landingsRefused;
    const words = `${refused} writes of the dead prefill were refused at the fence`;
    return { call, maxTokens: OUTPUT_TOKENS, prevented: refused > 0 ? { guard: 'fence', words } : undefined };
  },
};
