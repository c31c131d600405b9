import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { cve, unwantedSwitch, VLLM_SECURITY } from './shared.js';

export const tokenRoutes: Rule = {
  meta: {
    id: 'exposure.token-routes',
    group: 'exposure',
    title: 'Routes that take tokens and cache keys as they come are switched on',
    severity: 'low',
    engines: ['vllm'],
    needs: ['flags'],
    why: '`/inference/v1/generate` is made for a trusted coordinator: before 0.29 it did not check lengths, before 0.30 it believed a caller’s multimodal cache keys.',
    how: '`--enable-scale-out`.',
    change: 'Start without `--enable-scale-out`, or let only the coordinator reach `/inference`.',
    references: [cve('CVE-2026-100651'), cve('CVE-2026-105754'), VLLM_SECURITY],
    cwe: ['CWE-749'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedSwitch(node, 'enable-scale-out');
  },
};
