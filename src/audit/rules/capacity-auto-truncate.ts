import { best, isPaired, switchOf } from '../ask.js';
import { counterparts } from '../peers.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { SGLANG_ARGUMENTS, unknownFlag } from './shared.js';

/** Both sides are known to cut at the same length. */
function cutsAlike(fleet: Fleet, node: NodeFacts): boolean {
  const own = best(node.acceptLimit)?.value;
  const others = counterparts(fleet, node).map((one) => best(one.acceptLimit)?.value);
  return own !== undefined && others.length > 0 && others.every((other) => other === own);
}

export const autoTruncate: Rule = {
  meta: {
    id: 'capacity.auto-truncate',
    group: 'capacity',
    title: 'Over-long prompts are cut silently instead of refused',
    severity: 'high',
    engines: ['sglang'],
    needs: ['flags', 'role', 'acceptLimit'],
    why: 'The answer is a 200 to a prompt that nobody sent. In prefill/decode mode each side cuts by its own limit, so the two can disagree about how much KV there is: the shape of the public incident.',
    how: '`--allow-auto-truncate` on the command line or in `/server_info`.',
    change: 'Remove `--allow-auto-truncate`; clients get a 400 with the length instead.',
    references: [SGLANG_ARGUMENTS],
    cwe: ['CWE-222'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    const said = switchOf(node, 'allow-auto-truncate', false);
    if (said === null) return unknownFlag(node, 'allow-auto-truncate');
    if (!said.value) return passed('`--allow-auto-truncate` is off');
    const severity = !isPaired(node) ? 'low' : cutsAlike(fleet, node) ? 'medium' : 'high';
    return failed({
      severity,
      at: said.source,
      observed: `\`--allow-auto-truncate\` on a ${node.role} node`,
      wanted: 'over-long prompts refused',
    });
  },
};
