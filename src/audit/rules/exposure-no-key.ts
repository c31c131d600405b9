import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import {
  LLAMA_README,
  VLLM_SECURITY,
  apiReach,
  hostOf,
  isRouteOpen,
  isShut,
  keySet,
  routeSource,
  unknownFlag,
  unlessServing,
} from './shared.js';

/** The variable in which a key may be given instead. */
const VARIABLES: Readonly<Record<string, string>> = { vllm: 'VLLM_API_KEY', llamacpp: 'LLAMA_API_KEY' };

export const noKey: Rule = {
  meta: {
    id: 'exposure.no-key',
    group: 'exposure',
    title: 'The engine asks for no key',
    severity: 'high',
    engines: ['sglang', 'vllm', 'llamacpp'],
    needs: ['flags', 'variables', 'endpoint', 'manifest'],
    why: 'Whoever reaches the port sends prompts past every limit and every tenant check, and changes the engine’s state: caches, sessions, weights.',
    how: 'No `--api-key` (nor `VLLM_API_KEY`, `LLAMA_API_KEY`), or `/v1/models` answered without a key; and nothing says that only peers reach the port.',
    change:
      'Start with `--api-key KEY` (SGLang: `--admin-api-key` too), or let only the gateway reach the port (NetworkPolicy, `--host 127.0.0.1`).',
    references: [VLLM_SECURITY, LLAMA_README],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-306'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const worker = unlessServing(node);
    if (worker !== null) return worker;
    const key = keySet(node, 'api-key', VARIABLES[node.engine ?? ''] ?? null);
    if (key?.value === true) return passed('it has a key');
    const answered = isRouteOpen(node, '/v1/models');
    const { reach, why, source } = apiReach(node);
    if (isShut(reach)) return passed(why);
    if (key === null && !answered) return unknownFlag(node, 'api-key');
    const observed = answered ? '`/v1/models` answered without a key' : 'no key is set';
    const wanted = 'a key, or a port that only peers reach';
    if (reach === 'outside' || reach === 'cluster') {
      return failed({
        severity: reach === 'outside' ? 'high' : 'medium',
        at: source,
        observed: `${observed}; ${why}`,
        wanted,
      });
    }
    const host = hostOf(node);
    if (host === null && !answered) return notChecked('neither its address nor its manifests are known');
    const at = answered ? routeSource(node, '/v1/models') : (host?.source ?? null);
    return failed({ severity: 'medium', at, observed, wanted });
  },
};
