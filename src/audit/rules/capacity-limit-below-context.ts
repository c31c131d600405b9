import { best, holdsPool } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, vllmIssue } from './shared.js';

/** Tokens that engines keep back below the context: SGLang 7, draft tokens and diffusion blocks some more. */
export const RESERVE_TOKENS_MAX = 64;

export const limitBelowContext: Rule = {
  meta: {
    id: 'capacity.limit-below-context',
    group: 'capacity',
    title: 'The engine refuses prompts of a length that its clients are told they may send',
    severity: 'medium',
    engines: ['sglang', 'vllm', 'cofferdam'],
    needs: ['advertised', 'acceptLimit'],
    why: 'The limit is bound by the pool and not by the context. Whoever trusts `/v1/models` sends prompts that must be rejected inside the engine, on the very path that failed in the public incident.',
    how: 'The largest prompt served (`max_req_input_len` of `/server_info`, or what the version computes) against the advertised context.',
    change:
      'Lower `--context-length` (SGLang) or `--max-model-len` (vLLM) to what the pool holds, so that the tokenizer refuses first.',
    references: [sglangIssue(30233), vllmIssue(39734)],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-1188'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (!holdsPool(node)) return notApplicable('it holds no KV pool');
    const advertised = best(node.advertised);
    const limit = best(node.acceptLimit);
    if (advertised === null || limit === null)
      return notChecked('the context or the longest prompt served is not known');
    const gap = advertised.value - limit.value;
    if (gap <= RESERVE_TOKENS_MAX) return passed(`prompts of ${limit.value} of ${advertised.value} tokens are served`);
    return failed({
      title: `Prompts above ${limit.value} tokens are refused inside the engine, and ${advertised.value} are advertised`,
      at: limit.source,
      observed: `context ${advertised.value}, largest prompt served ${limit.value}`,
      wanted: `a limit within ${RESERVE_TOKENS_MAX} tokens of the context`,
    });
  },
};
