import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { apiReach, isRouteOpen, isShut, keySet, routeSource, unknownFlag } from './shared.js';

export const routerOpen: Rule = {
  meta: {
    id: 'exposure.router-open',
    group: 'exposure',
    title: 'The router has no key: anyone can add a worker that is then sent prompts',
    severity: 'critical',
    engines: ['sglang-router'],
    needs: ['flags', 'endpoint', 'manifest'],
    why: 'Without `--api-key` its administration is open too. A worker that was added by a stranger got one of the next four prompts in full.',
    how: 'No `--api-key`, or `/workers` answered without a key.',
    change: 'Start the router with `--api-key KEY` and `--host 127.0.0.1`, and let only a gateway reach it.',
    references: ['https://docs.sglang.io/docs/advanced_features/sgl_model_gateway'],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-306'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const wanted = '`--api-key`';
    if (isRouteOpen(node, '/workers')) {
      return failed({ at: routeSource(node, '/workers'), observed: '/workers answered without a key', wanted });
    }
    const key = keySet(node, 'api-key');
    if (key === null) return unknownFlag(node, 'api-key');
    if (key.value) return passed('it has a key');
    const { reach, why } = apiReach(node);
    const severity = reach === 'outside' ? 'critical' : isShut(reach) ? 'low' : 'high';
    return failed({ severity, at: key.source, observed: `no \`--api-key\`; ${why}`, wanted });
  },
};
