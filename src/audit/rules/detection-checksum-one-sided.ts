import { atLeast, switchOf } from '../ask.js';
import { counterparts } from '../peers.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { CHECKSUM, CHECKSUM_FROM } from './detection-checksum-off.js';
import { sglangIssue, unknownFlag, unlessPaired } from './shared.js';

/** What the node does; a version without the flag has it off. Null: not known. */
function verifies(node: NodeFacts): boolean | null {
  if (atLeast(node, CHECKSUM_FROM) === false && atLeast(node, '0.5.20.dev0') === false) return false;
  return switchOf(node, CHECKSUM, false)?.value ?? null;
}

export const checksumOneSided: Rule = {
  meta: {
    id: 'detection.checksum-one-sided',
    group: 'detection',
    title: 'The KV checksum is on for one role only, and then checks nothing',
    severity: 'high',
    engines: ['sglang'],
    needs: ['role', 'flags', 'version'],
    why: 'A digest that the other side did not make is skipped without a word: the flag is on, and every request passes unverified.',
    how: `\`--${CHECKSUM}\` of this node against every node of the other role.`,
    change: `Start both roles with \`--${CHECKSUM}\`.`,
    references: [sglangIssue(39500)],
    cwe: ['CWE-354', 'CWE-636'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const own = verifies(node);
    if (own === null) return unknownFlag(node, CHECKSUM);
    if (!own) return notApplicable('the checksum is off here');
    const peers = counterparts(fleet, node);
    if (peers.length === 0) return notChecked('no node of the other role was given');
    const without = peers.filter((peer) => verifies(peer) === false);
    if (without.length > 0) {
      return failed({
        at: switchOf(node, CHECKSUM, false)?.source ?? null,
        observed: `on here, off on ${without.map(({ name }) => name).join(', ')}`,
        wanted: 'on, on both roles',
      });
    }
    if (peers.some((peer) => verifies(peer) === null))
      return notChecked('whether the other role has it on is not known');
    return passed('both roles have it on');
  },
};
