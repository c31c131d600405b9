import { best, flagValue, signOf } from '../ask.js';
import { counterparts } from '../peers.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unlessPaired } from './shared.js';

type Layout = Readonly<Record<string, string | null>>;

/** What both sides must agree on; null: not known. `auto` follows the model. */
function layoutOf(node: NodeFacts): Layout {
  const page = best(node.pageTokens)?.value;
  return {
    'page size': page === undefined ? null : String(page),
    'KV data type': flagValue(node, 'kv-cache-dtype', 'auto')?.value ?? null,
  };
}

export const pairMismatch: Rule = {
  meta: {
    id: 'detection.pair-mismatch',
    group: 'detection',
    title: 'Prefill and decode lay out KV differently',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['role', 'flags', 'log'],
    why: 'Pages of another size or type are refused late, or end the scheduler that meets them; digests of unequal layouts cannot be compared, so requests pass unverified.',
    how: 'Page size and `--kv-cache-dtype` of both roles; `Page size mismatch`, `KV cache dtype mismatch` or `KV layout mismatch` in a log.',
    change: 'Give both roles the same `--page-size` and `--kv-cache-dtype`.',
    references: [sglangIssue(39500)],
    cwe: ['CWE-1188'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const sign = signOf(node, 'pair-mismatch');
    const wanted = 'one layout on both roles';
    if (sign !== null) return failed({ at: sign.source, observed: `${sign.count} lines that say so`, wanted });
    const peers = counterparts(fleet, node);
    if (peers.length === 0) return notChecked('no node of the other role was given');
    const own = layoutOf(node);
    let open = false;
    for (const peer of peers) {
      const other = layoutOf(peer);
      for (const [what, value] of Object.entries(own)) {
        if (value === null || other[what] === null) open = true;
        else if (value !== other[what]) {
          const observed = `${what} ${value} here, ${other[what]} on ${peer.name}`;
          return failed({ at: best(node.pageTokens)?.source ?? null, observed, wanted });
        }
      }
    }
    return open
      ? notChecked('page size or KV data type of a side is not known')
      : passed('page size and data type agree');
  },
};
