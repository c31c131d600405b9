import { signOf, switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { apiReach, isRouteOpen, isShut, LLAMA_README, routeSource, unknownFlag } from './shared.js';

export const slotsShown: Rule = {
  meta: {
    id: 'exposure.slots-shown',
    group: 'exposure',
    title: 'Clients can look at every slot',
    severity: 'medium',
    engines: ['llamacpp'],
    needs: ['flags', 'endpoint', 'log', 'manifest'],
    why: '`/slots` shows what all tenants’ requests are doing, with their parameters. Without a key and with every origin allowed, any page that somebody opens reads it too.',
    how: '`--slots` (on by default), `/slots` that answered, or the warning about a missing key and all origins.',
    change: 'Start with `--no-slots` and `--api-key`.',
    references: [LLAMA_README],
    cwe: ['CWE-200', 'CWE-942'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const wanted = '`--no-slots`';
    const sign = signOf(node, 'no-key-any-origin');
    if (sign !== null) {
      return failed({ at: sign.source, observed: 'no key, and any page may read the answers', wanted: '`--api-key`' });
    }
    if (isRouteOpen(node, '/slots')) {
      return failed({ at: routeSource(node, '/slots'), observed: '`/slots` answered without a key', wanted });
    }
    const said = switchOf(node, 'slots', true);
    if (said === null) return unknownFlag(node, 'slots');
    if (!said.value) return passed('`--slots` is off');
    const { reach, why } = apiReach(node);
    if (isShut(reach)) return passed(why);
    return failed({ severity: 'low', at: said.source, observed: `\`--slots\` is on; ${why}`, wanted });
  },
};
