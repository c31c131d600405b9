import { RegistrationTable } from '../kv/registration.js';
import { DecodeNode } from './decode-node.js';
import { modelIn, poolIn } from './parts.js';
import { StatsBlock } from './stats.js';
import type { ToDecode } from './traffic.js';
import { runWorker } from './worker-host.js';

runWorker<ToDecode>(
  (init, ports, clock) =>
    new DecodeNode({
      config: init.config,
      incarnation: init.incarnation,
      prefillIncarnation: init.peerIncarnation,
      memory: init.memory,
      pool: poolIn(init.config, 'decode', init.memory),
      model: modelIn(init.config, 'decode', init.memory),
      registrations: new RegistrationTable(init.target.registrations),
      ports,
      stats: new StatsBlock(init.stats),
      nowMs: () => clock.nowMs(),
    }),
);
