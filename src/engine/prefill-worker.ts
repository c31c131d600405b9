import { modelIn, poolIn } from './parts.js';
import { PrefillNode } from './prefill-node.js';
import { StatsBlock } from './stats.js';
import type { ToPrefill } from './traffic.js';
import { runWorker } from './worker-host.js';

runWorker<ToPrefill>(
  (init, ports, clock) =>
    new PrefillNode({
      config: init.config,
      incarnation: init.incarnation,
      memory: init.memory,
      pool: poolIn(init.config, 'prefill', init.memory),
      model: modelIn(init.config, 'prefill', init.memory),
      target: init.target,
      ports,
      stats: new StatsBlock(init.stats),
      nowMs: () => clock.nowMs(),
    }),
);
