/** Two requests in one room: acme's completion starts globex's answer, over pages that hold acme's past. */
import type { Scenario } from '../scenario.js';
import { acmeFillsPages, globexAsks, OUTPUT_TOKENS } from './moves.js';

export const roomCollision: Scenario = {
  act: async (world) => {
    await acmeFillsPages(world, 900, OUTPUT_TOKENS);
    const call = await globexAsks(world, 700);
    const { wire } = world.engine.prefill;
    wire.hold((write) => write.slot === call.slot && write.attempt === call.attempt);
    const other = await world.send('acme', world.prompts.acme(300), { maxTokens: OUTPUT_TOKENS });
    world.tell(
      'globex sent a prompt of 700 tokens, whose writes travelled slowly; acme sent one of 300 tokens meanwhile.',
    );
    world.run(() => call.end !== null || other.end !== null);
    wire.release();
    await world.finish(call);
    const words = "acme's completion spoke for acme's own lease and for no other";
    const isKept = world.isOn('lease') && other.end?.outcome === 'finished';
    return { call, maxTokens: OUTPUT_TOKENS, prevented: isKept ? { guard: 'lease', words } : undefined };
  },
};
