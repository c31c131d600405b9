/** The sweep of one node: what it finds goes to the operators, and a page that is kept for later prompts is given to none of them. */
import type { View } from '../handoff/layout.js';
import type { Checksummer } from '../kv/checksum.js';
import type { PagePool } from '../kv/pool.js';
import { Sweep } from '../kv/sweep.js';
import type { EngineConfig } from './config.js';
import type { NodePorts } from './traffic.js';

export interface SweptNode {
  readonly config: EngineConfig;
  readonly incarnation: number;
  readonly pool: PagePool;
  readonly ports: NodePorts;
}

export function newSweep(
  { config, incarnation, pool, ports }: SweptNode,
  view: View,
  checksummer: Checksummer,
  condemn: (page: number) => void,
): Sweep {
  const { zeroOnRelease } = config;
  const onFinding = ({ page, words, isSealed }: { page: number; words: string; isSealed: boolean }): void => {
    if (isSealed) condemn(page);
    ports.toGateway({ kind: 'sweep', words });
  };
  // A decode node that comes back gets new memory, since writes for its old life may still land there; prefill keeps its own.
  const isFresh = pool.node === 'decode';
  return new Sweep({ isFresh, pool, view, incarnation, checksummer, zeroOnRelease, onFinding });
}
