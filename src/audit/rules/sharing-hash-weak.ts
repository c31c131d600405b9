import { before } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { cve, unwantedValue, VLLM_SECURITY } from './shared.js';

export const hashWeak: Rule = {
  meta: {
    id: 'sharing.hash-weak',
    group: 'sharing',
    title: 'Blocks of the prefix cache are found by a hash that is not cryptographic',
    severity: 'high',
    engines: ['vllm'],
    needs: ['flags', 'version'],
    why: 'Two prompts with the same hash share blocks: one tenant’s prompt is answered over another’s KV. With `builtin` or `xxhash` such prompts can be made.',
    how: '`--prefix-caching-hash-algo` is `builtin`, `xxhash` or `xxhash_cbor`; the default of current versions is `sha256`.',
    change: 'Set `--prefix-caching-hash-algo sha256` (or `sha256_cbor`).',
    references: [cve('CVE-2025-25183'), VLLM_SECURITY],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-328'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const severity = before(node, '0.7.2') === true ? 'high' : 'medium';
    return unwantedValue(
      node,
      'prefix-caching-hash-algo',
      (value) => /^(?:builtin|xxhash)/i.test(value),
      () => ({ wanted: '`sha256`', severity }),
      'sha256',
    );
  },
};
