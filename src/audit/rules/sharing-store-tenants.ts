import { switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { unknownFlag } from './shared.js';

export const storeTenants: Rule = {
  meta: {
    id: 'sharing.store-tenants',
    group: 'sharing',
    title: 'The Mooncake store keeps all tenants in one space',
    severity: 'low',
    engines: ['mooncake'],
    needs: ['flags'],
    why: 'Without `--enable_multi_tenants` every client is the tenant "default", and isolation is whatever the engines’ keys hold. With it the tenant is still what the client states.',
    how: '`--enable_multi_tenants` of `mooncake_master`.',
    change:
      'Start `mooncake_master --enable_multi_tenants=true`, give each deployment a `tenant_id`, and salt every request.',
    references: [
      'https://github.com/kvcache-ai/Mooncake/blob/main/docs/source/deployment/kv-cache-sharing-and-isolation.md',
    ],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-653'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const said = switchOf(node, 'enable-multi-tenants', false);
    if (said === null) return unknownFlag(node, 'enable_multi_tenants');
    if (!node.flags.has('rpc-port') && !node.flags.has('port') && node.flags.has('metadata-server')) {
      return notApplicable('it is no master');
    }
    if (said.value) return passed('`--enable_multi_tenants` is on');
    return failed({ at: said.source, observed: '`--enable_multi_tenants` is off', wanted: 'on', certain: false });
  },
};
