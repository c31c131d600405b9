/** What only a person knows: `--pool ROLE=N` and `--advertised N`. */
import { CodedError } from '../../base/errors.js';
import { shown } from '../../base/text.js';
import type { Group } from './match.js';
import { nameKey } from './names.js';
import type { Piece } from './piece.js';

export interface Told {
  /** Tokens; null: not told. */
  readonly advertised: number | null;
  readonly pools: readonly ToldPool[];
}

export interface ToldPool {
  /** A role, or a node's name. */
  readonly node: string;
  readonly tokens: number;
}

const NO_POOL: ReadonlySet<string> = new Set([
  'sglang-router',
  'sglang-mini-lb',
  'vllm-router',
  'llmd-sidecar',
  'llmd-epp',
  'dynamo',
  'lmcache',
  'mooncake',
  'nats',
  'etcd',
]);

/** Adds them to the groups that they speak of. Throws `usage` for a pool of nobody. */
export function tell(groups: readonly Group[], named: ReadonlyMap<Group, string>, told: Told): void {
  for (const group of groups) {
    if (told.advertised !== null && !NO_POOL.has(group.engine ?? '')) {
      group.add(piece({ kind: 'advertised', tokens: told.advertised }, '--advertised'));
    }
  }
  for (const { node, tokens } of told.pools) {
    const meant = groups.filter((group) => group.role === node || nameKey(named.get(group) ?? '') === nameKey(node));
    if (meant.length === 0) {
      throw new CodedError(
        'usage',
        `Expected \`--pool\` to begin with the role or name of a node that was read, got ${shown(node)}`,
      );
    }
    for (const group of meant) {
      group.add(piece({ kind: 'pool', tokens, rank: null, estimate: false }, '--pool'));
    }
  }
}

function piece(fact: Piece['reading']['facts'][number], name: string): Piece {
  return { reading: { engine: null, facts: [fact] }, source: { kind: 'person', name }, place: '', name: null };
}
