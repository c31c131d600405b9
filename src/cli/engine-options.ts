import type { EngineConfig } from '../engine/config.js';
import { engineConfig } from '../engine/config.js';
import { type FaultName, isFaultName } from '../handoff/faults.js';
import { ALL_GUARDS, guardBits } from '../handoff/guards.js';
import type { FaultOptions, SizeOptions } from './options.js';

/** Sizes, faults and guards of the command line as the engine takes them. Throws CodedError `usage`. */
export function embeddedEngineConfig(sizes: SizeOptions, broken: FaultOptions): EngineConfig {
  const faults = broken.faults.filter((name): name is FaultName => isFaultName(name));
  const config = engineConfig({
    context: sizes.context,
    ...(sizes.prefillPoolGiven ? { prefillPool: sizes.prefillPool } : {}),
    decodePool: sizes.decodePool,
    pageTokens: sizes.pageTokens,
    runningMax: sizes.runningMax,
    zeroOnRelease: sizes.zeroOnRelease,
    ...(sizes.prefixCache ? {} : { prefixCache: false }),
    faults,
    seed: broken.seed,
    ...(broken.guards === null ? {} : { guards: broken.guards === 'on' ? ALL_GUARDS : 0 }),
  });
  const guards = config.rules.guards & ~guardBits(broken.guardsOff);
  return { ...config, rules: { ...config.rules, guards } };
}
