/** Two tenants with one beginning of their prompts: globex's is answered from pages that acme's left, faster and cheaper. */
import type { Acted, Scenario } from '../scenario.js';
import type { World } from '../world.js';
import type { Call } from '../call.js';
import { OUTPUT_TOKENS } from './moves.js';

const COMMON = 320;
const OWN = 300;

export const unsaltedPrefix: Scenario = {
  act: async (world) => {
    const common = world.prompts.globex(COMMON);
    await acmeLeavesPrefix(world, common + world.prompts.acme(OWN));
    const call = await world.send('globex', common + world.prompts.globex(OWN), { maxTokens: OUTPUT_TOKENS });
    world.pages.watch(call);
    world.tell(`globex sent a prompt of ${COMMON + OWN} tokens, of which the first ${COMMON} are the same as acme's.`);
    await world.finish(call);
    return withSalt(world, call);
  },
};

/** Acme is served, and the whole pages of its prompt stay for its next ones. */
export async function acmeLeavesPrefix(world: World, prompt: string): Promise<void> {
  const acme = await world.send('acme', prompt, { maxTokens: OUTPUT_TOKENS });
  await world.finish(acme);
  world.settle(acme);
  const pages = world.engine.coordinator.stats().decodePages.sealed;
  world.tell(
    `acme sent a prompt of ${prompt.length} tokens, was served, and left ${pages} pages for its next prompts.`,
  );
}

export function withSalt(world: World, call: Call): Acted {
  const refused = world.engine.coordinator.stats().guardHits.salt;
  const words = "the pages that acme had left were offered for globex's prompt, and refused as another tenant's";
  const isKept = world.isOn('salt') && refused > 0;
  return { call, maxTokens: OUTPUT_TOKENS, prevented: isKept ? { guard: 'salt', words } : undefined };
}
