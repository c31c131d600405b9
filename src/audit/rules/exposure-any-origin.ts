import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { isRouteOpen, routeSource, VLLM_SECURITY } from './shared.js';

export const anyOrigin: Rule = {
  meta: {
    id: 'exposure.any-origin',
    group: 'exposure',
    title: 'Any web page may read the node’s answers',
    severity: 'low',
    engines: ['sglang', 'vllm', 'llamacpp', 'sglang-router'],
    needs: ['endpoint'],
    why: 'A page that somebody opens inside the network reaches an engine that the page’s maker does not, and reads what comes back; with a key it must know the key first.',
    how: '`access-control-allow-origin: *` in an answer.',
    change: 'Set `--allowed-origins` (vLLM) to none, or let only a gateway reach the node; a key makes it harmless.',
    references: [VLLM_SECURITY],
    cwe: ['CWE-942'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (node.endpoint === null || !node.endpoint.answered) return notChecked('it was not asked live');
    if (!node.endpoint.anyOrigin) return passed('no answer allows every origin');
    const open = isRouteOpen(node, '/v1/models');
    return failed({
      severity: open ? 'low' : 'info',
      at: routeSource(node, '/v1/models'),
      observed: `every origin is allowed${open ? ', and no key is asked for' : ''}`,
      wanted: 'named origins',
    });
  },
};
