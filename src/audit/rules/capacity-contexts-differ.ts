import { best, holdsPool } from '../ask.js';
import { counterparts } from '../peers.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue } from './shared.js';

/** Asked of prefill; the pairs are all of its decodes. */
export const contextsDiffer: Rule = {
  meta: {
    id: 'capacity.contexts-differ',
    group: 'capacity',
    title: 'Prefill and decode have different contexts',
    severity: 'medium',
    engines: ['sglang', 'vllm', 'cofferdam', 'tensorrt-llm'],
    needs: ['role', 'advertised'],
    why: 'Each side checks a prompt against its own context. What one takes and the other refuses stays half alive on the side that took it.',
    how: 'The context of every prefill node against that of every decode node.',
    change: 'Give both roles the same `--context-length` (SGLang) or `--max-model-len` (vLLM).',
    references: [sglangIssue(30233)],
    cwe: ['CWE-1188'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (!holdsPool(node) || node.role !== 'prefill') return notApplicable('it is no prefill node');
    const decodes = counterparts(fleet, node);
    const context = best(node.advertised);
    if (decodes.length === 0) return notChecked('no decode node was given');
    if (context === null) return notChecked('its context is not known');
    const known = decodes.flatMap((decode) => {
      const other = best(decode.advertised);
      return other === null ? [] : [{ decode, tokens: other.value }];
    });
    const [first, ...more] = known
      .filter(({ tokens }) => tokens !== context.value)
      .map(
        ({ decode, tokens }): Observed => ({
          title: `The context is ${context.value} on prefill and ${tokens} on decode (${decode.name})`,
          at: context.source,
          observed: `prefill ${context.value}, ${decode.name} ${tokens}`,
          wanted: 'one context on both roles',
        }),
      );
    if (first !== undefined) return failed(first, ...more);
    if (known.length < decodes.length) return notChecked('the context of a decode node is not known');
    return passed(`both roles have a context of ${context.value}`);
  },
};
