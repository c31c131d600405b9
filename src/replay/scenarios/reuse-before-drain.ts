/** Acme leaves in mid-transfer, globex gets its pages, and acme's writes land in them. */
import { DecodePhase } from '../../handoff/decode.js';
import type { Acted, Scenario } from '../scenario.js';
import type { World } from '../world.js';
import { acmeIsInTransfer, globexAsks, OUTPUT_TOKENS } from './moves.js';

const PROMPT = 800;

export const reuseBeforeDrain: Scenario = {
  act: async (world) => {
    const acme = await acmeIsInTransfer(world, PROMPT);
    await world.leave(acme);
    world.run(() => world.decodePhase(acme) === DecodePhase.idle || world.decodePhase(acme) === DecodePhase.draining);
    world.tell(
      world.decodePhase(acme) === DecodePhase.idle
        ? 'acme left, and decode gave its pages back at once.'
        : 'acme left, and decode kept its pages out of use.',
    );
    return lateLanding(world);
  },
};

/** Globex is served; once it decodes, whatever was held on the wire lands. */
export async function lateLanding(world: World): Promise<Acted> {
  const call = await globexAsks(world, PROMPT);
  world.run(() => world.decodePhase(call) === DecodePhase.decoding || call.end !== null);
  const draining = world.engine.coordinator.stats().decodePages.draining;
  world.engine.prefill.wire.release();
  world.tell(`globex sent a prompt of ${PROMPT} tokens; while it was being answered, acme's writes landed.`);
  await world.finish(call);
  const words = `acme's ${draining} pages stayed out of use until its last write had landed`;
  return { call, maxTokens: OUTPUT_TOKENS, prevented: draining > 0 ? { guard: 'drain', words } : undefined };
}
