import { best, flagOf, isTrue, poolOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { LLAMA_README, llamaIssue } from './shared.js';

export const slotsOvercommitted: Rule = {
  meta: {
    id: 'capacity.slots-overcommitted',
    group: 'capacity',
    title: 'The slots together promise more context than the pool holds',
    severity: 'high',
    engines: ['llamacpp'],
    needs: ['slots', 'pool'],
    why: 'With a unified pool every slot advertises the whole of it. When the sum of what tenants use outgrows the pool, all running requests end with 500 "Context size has been exceeded.", also those of tenants that sent little.',
    how: '`/props` and `/slots`, or the startup log: slots times context of each, against the pool.',
    change:
      'Start with `-np N` and `--kv-unified-per-slot C` (or `--no-kv-unified`) so that N times C is at most `-c`.',
    references: [llamaIssue(23652), LLAMA_README],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-770'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const slots = best(node.slots);
    if (slots === null || slots.value.contextEach === null) {
      return notChecked('slots and their contexts are not known; `/props` or the startup log would tell them');
    }
    const { count, contextEach } = slots.value;
    const unified = sharing(node, count);
    if (count === 1) return passed('there is one slot');
    if (unified === false) return passed('every slot has a pool of its own');
    if (unified === null)
      return notChecked(
        `\`/props\` and \`/slots\` tell ${count} slots of ${contextEach} tokens each, and not whether they share one pool of that size; the startup log (\`kv_unified\`), or \`--command\` with the line that started it, would`,
      );
    const pool = poolOf(node);
    if (pool === null) return notChecked('the pool behind the slots is not known; the startup log would tell it');
    const promised = count * contextEach;
    if (promised <= pool.value.tokens)
      return passed(`${count} slots of ${contextEach} fit the pool of ${pool.value.tokens}`);
    return failed({
      title: `${count} slots of ${contextEach} tokens share a pool of ${pool.value.tokens}`,
      at: slots.source,
      observed: `${count} × ${contextEach} = ${promised} tokens promised, pool ${pool.value.tokens}`,
      wanted: `at most ${pool.value.tokens} tokens promised in all`,
    });
  },
};

/** Whether the slots share one pool: as a log or command says it, or as the flags decide; null: not known. */
function sharing(node: NodeFacts, count: number): boolean | null {
  const said = node.slots.find(({ value }) => value.unified !== null && value.count === count);
  if (said !== undefined) return said.value.unified;
  const flag = flagOf(node, 'kv-unified');
  if (flag.state === 'set') return flag.value === null ? null : isTrue(flag.value);
  const slots = flagOf(node, 'parallel');
  // With the number of slots left to it, it makes one pool for all of them.
  if (flag.state === 'unknown' || slots.state === 'unknown') return null;
  return slots.state === 'default' || Number(slots.value) < 0;
}
