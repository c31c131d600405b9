import type { EngineOptions } from '../engine/config.js';
import type { GuardName } from '../handoff/guards.js';
import type { Call } from './call.js';
import type { World } from './world.js';

/** What a script leaves to be judged. */
export interface Acted {
  /** The request whose answer decides; its prompt and `maxTokens` are asked of a quiet engine too. */
  readonly call: Call;
  readonly maxTokens: number;
  /** A guard that kept the harm from happening without refusing anything, and how that showed. */
  readonly prevented?: { readonly guard: GuardName; readonly words: string } | undefined;
}

export interface Scenario {
  /** Where they differ from those of `World`. */
  readonly sizes?: EngineOptions;
  /** Acme, then globex; in sentences too. */
  act(world: World): Promise<Acted>;
}
