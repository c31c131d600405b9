/** Two tenants with one beginning of their prompts. Nothing is shared while the engine has no index of prefixes over real tokens. */
import type { Scenario } from '../scenario.js';
import type { World } from '../world.js';
import { OUTPUT_TOKENS } from './moves.js';

const COMMON = 320;
const OWN = 300;

export const unsaltedPrefix: Scenario = { act: (world) => afterAcme(world, world.prompts.globex(COMMON), true) };

/** Acme is served, then globex with `beginning`, which is acme's as well or another one. */
export async function afterAcme(world: World, beginning: string, isSame: boolean): ReturnType<Scenario['act']> {
  const acmes = isSame ? beginning : world.prompts.globex(COMMON);
  const acme = await world.send('acme', acmes + world.prompts.acme(OWN), { maxTokens: OUTPUT_TOKENS });
  await world.finish(acme);
  world.settle(acme);
  const call = await world.send('globex', beginning + world.prompts.globex(OWN), { maxTokens: OUTPUT_TOKENS });
  world.pages.watch(call);
  const how = isSame ? 'are the same' : 'differ';
  world.tell(`acme and globex sent prompts of ${COMMON + OWN} tokens, of which the first ${COMMON} ${how}.`);
  world.tell('The engine keeps no index of prefixes yet, so there was nothing to share.');
  await world.finish(call);
  return { call, maxTokens: OUTPUT_TOKENS };
}
