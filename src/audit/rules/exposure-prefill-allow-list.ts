import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { switchOf } from '../ask.js';
import { unknownFlag } from './shared.js';

export const prefillAllowList: Rule = {
  meta: {
    id: 'exposure.prefill-allow-list',
    group: 'exposure',
    title: 'The sidecar asks whatever host a header names',
    severity: 'high',
    engines: ['llmd-sidecar'],
    needs: ['flags'],
    why: 'A client whose routing header reaches the sidecar chooses where its prompt goes and whose KV decode takes. The allow-list is off unless it is set.',
    how: '`--enable-ssrf-protection` is not on.',
    change:
      'Start the sidecar with `--enable-ssrf-protection`, and strip `x-prefiller-host-port` and `x-kv-cache-source-host-port` at the edge.',
    references: ['https://github.com/llm-d/llm-d-router/pull/1937'],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-918'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const said = switchOf(node, 'enable-ssrf-protection', false);
    if (said === null) return unknownFlag(node, 'enable-ssrf-protection');
    if (said.value) return passed('`--enable-ssrf-protection` is on');
    return failed({ at: said.source, observed: '`--enable-ssrf-protection` is off', wanted: 'on' });
  },
};
