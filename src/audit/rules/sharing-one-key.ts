import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, type Rule, type RuleOutcome } from '../rule.js';
import { keySet, unknownFlag } from './shared.js';

export const oneKey: Rule = {
  meta: {
    id: 'sharing.one-key',
    group: 'sharing',
    title: 'The router has one key for clients, for its administration and for its workers',
    severity: 'info',
    engines: ['sglang-router'],
    needs: ['flags'],
    why: 'Whoever holds it as a client can flush caches and add workers, which are then sent other tenants’ prompts; and no tenant can be told from another behind it.',
    how: '`--api-key` of the router, which knows one.',
    change: 'Keep the router’s `--api-key` to a gateway in front of it that has a key for each tenant.',
    references: ['https://docs.sglang.io/docs/advanced_features/sgl_model_gateway'],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-269'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const key = keySet(node, 'api-key');
    if (key === null) return unknownFlag(node, 'api-key');
    if (!key.value) return notApplicable('it has no key: `exposure.router-open` speaks of it');
    return failed({
      at: key.source,
      observed: 'one key for everything',
      wanted: 'a key for each tenant in front of it',
    });
  },
};
