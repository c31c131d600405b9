import { isPaired, switchOf } from '../ask.js';
import { ofEngine } from '../peers.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { cve, unknownFlag, vllmIssue } from './shared.js';

/** The switch that turns sharing on or off, and whether sharing is on when it is not given. */
const SWITCHES: Readonly<Record<string, readonly [flag: string, sharedWhen: boolean]>> = {
  sglang: ['disable-radix-cache', false],
  vllm: ['enable-prefix-caching', true],
};

export const prefixCacheUnsalted: Rule = {
  meta: {
    id: 'sharing.prefix-cache-unsalted',
    group: 'sharing',
    title: 'Prefixes are shared, and nothing here shows that each tenant has a salt',
    severity: 'info',
    engines: ['sglang', 'vllm'],
    needs: ['flags'],
    why: 'Without a secret salt in every request all tenants share one prefix cache: how long an answer takes, and `cached_tokens`, tell one tenant what another has sent (AUC 0.99 from eight tokens).',
    how: 'The prefix cache is on (the default). Salts ride in requests, so no setting shows them; a Cofferdam gateway among the nodes sets them.',
    change:
      'Set `cache_salt` in every request in front of the engine (a keyed hash of the tenant, never a name), refuse clients’ own, and let `cofferdam probe` show that it works.',
    references: [cve('CVE-2025-46570'), vllmIssue(17045), vllmIssue(39082)],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-208', 'CWE-524'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    const [name, sharedWhen] = SWITCHES[node.engine ?? ''] ?? ['', true];
    if (node.engine === 'sglang' && isPaired(node) && node.role === 'decode') {
      const radix = switchOf(node, 'disaggregation-decode-enable-radix-cache', false);
      if (radix?.value === false) return notApplicable('decode keeps no prefixes');
    }
    const said = switchOf(node, name, sharedWhen);
    if (said === null) return unknownFlag(node, name);
    if (said.value !== sharedWhen) return passed('the prefix cache is off');
    if (ofEngine(fleet, 'cofferdam').some(({ role }) => role === 'router'))
      return passed('a Cofferdam gateway sets salts');
    return failed({
      at: said.source,
      observed: 'the prefix cache is on',
      wanted: 'a salt in every request',
      certain: false,
    });
  },
};
