import { signOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, type Rule, type RuleOutcome } from '../rule.js';
import { isRouteOpen, routeSource, unwantedVariables, VLLM_SECURITY } from './shared.js';

export const devMode: Rule = {
  meta: {
    id: 'exposure.dev-mode',
    group: 'exposure',
    title: 'vLLM runs in development mode',
    severity: 'high',
    engines: ['vllm'],
    needs: ['variables', 'log', 'endpoint'],
    why: 'It opens routes that reset caches, put the engine to sleep and call any method of the workers, most of them without a key.',
    how: '`VLLM_SERVER_DEV_MODE=1`, its routes in the log, or `/server_info` that answers.',
    change: 'Unset `VLLM_SERVER_DEV_MODE`.',
    references: [VLLM_SECURITY],
    cwe: ['CWE-489', 'CWE-749'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const wanted = '`VLLM_SERVER_DEV_MODE` unset';
    const sign = signOf(node, 'dev-mode');
    if (sign !== null) return failed({ at: sign.source, observed: 'the log says so', wanted });
    if (isRouteOpen(node, '/server_info')) {
      return failed({ at: routeSource(node, '/server_info'), observed: '`/server_info` answers', wanted });
    }
    const asked = node.endpoint?.routes.find(({ path }) => path === '/server_info');
    if (asked?.statusOpen === 404) return { status: 'passed', why: '`/server_info` is not there' };
    return unwantedVariables(node, ['VLLM_SERVER_DEV_MODE'], null);
  },
};
