import { holdsPool } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import {
  VLLM_SECURITY,
  apiPort,
  apiReach,
  cve,
  isShut,
  keySet,
  unknownFlag,
  unknownReach,
  unlessServing,
} from './shared.js';

/** What stays open behind a key, in words. */
const OPEN: Readonly<Record<string, string>> = {
  sglang: '`/metrics`, health checks, and connections that are no plain HTTP requests',
  vllm: '`/invocations` and `/generative_scoring` (inference), `/tokenize`, `/scale_elastic_ep`, `/load`, `/metrics`',
};

export const openRoutes: Rule = {
  meta: {
    id: 'exposure.open-routes',
    group: 'exposure',
    title: 'The key leaves routes open',
    severity: 'high',
    engines: ['sglang', 'vllm'],
    needs: ['flags', 'variables', 'manifest'],
    why: 'vLLM guards only what begins with `/v1`, `/v2` and `/inference`: inference and changes of state beside them ask for no key. SGLang’s check sees plain HTTP requests only, and its bootstrap and message ports know no key.',
    how: 'A key is set, and clients can reach the port.',
    change:
      'Put a gateway with an allow-list of routes in front, and let only it reach the port; never take `--api-key` for the border between tenants.',
    references: [VLLM_SECURITY, cve('CVE-2026-48746')],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-288', 'CWE-306'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const worker = unlessServing(node);
    if (worker !== null) return worker;
    if (!holdsPool(node)) return notApplicable('it is no engine');
    const key = keySet(node, 'api-key', node.engine === 'vllm' ? 'VLLM_API_KEY' : null);
    if (key === null) return unknownFlag(node, 'api-key');
    if (!key.value) return notApplicable('it has no key: `exposure.no-key` speaks of it');
    const { reach, why, source } = apiReach(node);
    if (isShut(reach)) return passed(why);
    if (reach === 'unknown') return unknownReach(apiPort(node));
    return failed({
      severity: node.engine === 'vllm' && reach === 'outside' ? 'high' : 'medium',
      at: source,
      observed: `open behind the key: ${OPEN[node.engine ?? ''] ?? ''}; ${why}`,
      wanted: 'a port that only the gateway reaches',
    });
  },
};
