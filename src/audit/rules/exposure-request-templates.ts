import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { cve, unwantedSwitch } from './shared.js';

export const requestTemplates: Rule = {
  meta: {
    id: 'exposure.request-templates',
    group: 'exposure',
    title: 'Clients may bring their own chat template',
    severity: 'medium',
    engines: ['sglang', 'vllm'],
    needs: ['flags'],
    why: 'A template is a program, run in the server; it also makes the prompt another one than a gateway counted and admitted.',
    how: '`--trust-request-chat-template`.',
    change: 'Start without `--trust-request-chat-template`.',
    references: [cve('CVE-2026-5760')],
    cwe: ['CWE-1336'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedSwitch(node, 'trust-request-chat-template');
  },
};
