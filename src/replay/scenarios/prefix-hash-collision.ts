/** Two tenants whose beginnings could collide in a weak hash. Nothing is shared while the engine has no index of prefixes. */
import type { Scenario } from '../scenario.js';
import { afterAcme } from './unsalted-prefix.js';

export const prefixHashCollision: Scenario = { act: (world) => afterAcme(world, world.prompts.globex(320), false) };
