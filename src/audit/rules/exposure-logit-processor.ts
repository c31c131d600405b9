import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { cve, unwantedSwitch } from './shared.js';

export const logitProcessor: Rule = {
  meta: {
    id: 'exposure.logit-processor',
    group: 'exposure',
    title: 'Clients may send code that the engine runs',
    severity: 'critical',
    engines: ['sglang'],
    needs: ['flags'],
    why: 'A custom logit processor is deserialised from the request in the process that holds every tenant’s KV. Unchanged in 0.5.23.',
    how: '`--enable-custom-logit-processor` on the command line or in `/server_info`.',
    change: 'Start without `--enable-custom-logit-processor`.',
    references: [cve('CVE-2026-7304')],
    cwe: ['CWE-502', 'CWE-94'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedSwitch(node, 'enable-custom-logit-processor');
  },
};
