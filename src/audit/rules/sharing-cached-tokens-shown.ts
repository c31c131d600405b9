import { switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { cve, unknownFlag, vllmIssue } from './shared.js';

const SWITCHES: Readonly<Record<string, readonly string[]>> = {
  sglang: ['enable-cache-report'],
  vllm: ['enable-per-request-metrics', 'enable-prompt-tokens-details'],
};

export const cachedTokensShown: Rule = {
  meta: {
    id: 'sharing.cached-tokens-shown',
    group: 'sharing',
    title: 'Answers tell how many tokens came from the cache',
    severity: 'medium',
    engines: ['sglang', 'vllm'],
    needs: ['flags'],
    why: 'The count is an exact oracle of what others have sent, where timing is only a noisy one, unless every request has a secret salt or the gateway drops the field.',
    how: '`--enable-cache-report` (SGLang), `--enable-prompt-tokens-details` or `--enable-per-request-metrics` (vLLM).',
    change: 'Drop the switch, or drop `cached_tokens` and `metrics` from what tenants see.',
    references: [cve('CVE-2025-46570'), vllmIssue(39082)],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-203'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const names = SWITCHES[node.engine ?? ''] ?? [];
    const said = names.map((name) => ({ name, on: switchOf(node, name, false) }));
    const [first, ...more] = said.flatMap(({ name, on }): Observed[] =>
      on?.value === true
        ? [
            {
              severity: name === 'enable-per-request-metrics' ? 'medium' : 'low',
              at: on.source,
              observed: `\`--${name}\``,
              wanted: 'no cache counts for tenants',
            },
          ]
        : [],
    );
    if (first !== undefined) return failed(first, ...more);
    const open = said.find(({ on }) => on === null);
    return open === undefined ? passed('no switch for cache counts is on') : unknownFlag(node, open.name);
  },
};
