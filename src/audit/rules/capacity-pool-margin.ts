import { best, holdsPool, poolOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';

/** A pool with less than this above the context moves below it with the next change of weights, kernels or graphs. */
export const POOL_MARGIN_MIN = 0.05;

export const poolMargin: Rule = {
  meta: {
    id: 'capacity.pool-margin',
    group: 'capacity',
    title: 'The KV pool is hardly larger than the advertised context',
    severity: 'low',
    engines: ['sglang', 'vllm', 'cofferdam', 'tensorrt-llm'],
    needs: ['advertised', 'pool'],
    why: 'The pool is what is left of the GPU’s memory at the start. Quantisation, parallelism, graph sizes or the next version of the model move it, and nothing compares it with the context again.',
    how: 'Pool over context, from the same sources as `capacity.pool-below-context`.',
    change: 'Keep the pool at least 5 % above the context, and audit again after every change.',
    references: ['https://github.com/sgl-project/sglang/issues/30233'],
    cwe: ['CWE-1188'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (!holdsPool(node)) return notApplicable('it holds no KV pool');
    const advertised = best(node.advertised);
    const pool = poolOf(node);
    if (advertised === null || pool === null) return notChecked('context or pool is not known');
    const { tokens } = pool.value;
    if (tokens < advertised.value) return notApplicable('the pool is below the context');
    if (tokens >= advertised.value * (1 + POOL_MARGIN_MIN))
      return passed(`pool ${tokens}, context ${advertised.value}`);
    return failed({
      at: pool.source,
      observed: `context ${advertised.value}, pool ${tokens}`,
      wanted: `a pool of at least ${Math.ceil(advertised.value * (1 + POOL_MARGIN_MIN))} tokens`,
      certain: !pool.value.estimate,
    });
  },
};
