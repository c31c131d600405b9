import { best, holdsPool, isPaired, poolOf } from '../ask.js';
import type { Fleet, NodeFacts, Source } from '../facts.js';
import { askCommand } from '../place.js';
import { failed, notApplicable, notChecked, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';

/** The public incident's first number against its second. */
export const poolBelowContext: Rule = {
  meta: {
    id: 'capacity.pool-below-context',
    group: 'capacity',
    title: 'The KV pool is smaller than the advertised context',
    severity: 'critical',
    engines: 'all',
    needs: ['advertised', 'pool'],
    why: 'A prompt that the context allows and the pool does not is rejected inside the engine. In prefill/decode mode SGLang up to 0.5.19 answers it with what other tenants left in decode’s pages (155 responses of a provider in 2026); later versions let it hold decode’s pages until a timeout; vLLM hangs, with everyone behind it.',
    how: 'The context from `/v1/models`, `/server_info`, the startup log or flags; the pool from `/server_info` (per rank), metrics or the startup log. The smallest rank counts, since a request lives on one.',
    change:
      'Lower the advertised context below the pool, or enlarge the pool (more memory, more nodes, a smaller KV data type), and compare again after every change.',
    references: [
      'https://github.com/sgl-project/sglang/issues/30233',
      'https://github.com/sgl-project/sglang/pull/36988',
      'https://github.com/vllm-project/vllm/issues/39734',
    ],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-1188', 'CWE-226'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (node.engine !== null && !holdsPool(node)) return notApplicable('it holds no KV pool');
    const advertised = best(node.advertised);
    const pool = poolOf(node);
    const cap = best(node.poolCap);
    if (advertised === null)
      return notChecked(`the advertised context is not known; ${askCommand(node)} would tell it`);
    if (pool !== null) {
      const unsaid = best(node.poolUnsaid);
      if (pool.value.tokens >= advertised.value) {
        if (unsaid !== null) return notChecked(`the ranks that spoke hold it, but ${unsaid.value}`);
        return passed(`pool ${pool.value.tokens} of context ${advertised.value}`);
      }
      return failed(finding(node, advertised.value, pool.value.tokens, pool.source, !pool.value.estimate));
    }
    if (cap !== null && cap.value < advertised.value) {
      return failed(finding(node, advertised.value, cap.value, cap.source, true));
    }
    return notChecked(unknownPool(node, advertised.value));
  },
};

function finding(node: NodeFacts, context: number, pool: number, at: Source, certain: boolean): Observed {
  const paired = isPaired(node);
  const what = paired ? `The ${node.role} pool` : 'The KV pool';
  return {
    severity: paired ? 'critical' : 'high',
    title: `${what} holds ${pool} tokens, the advertised context is ${context}`,
    at,
    observed: `context ${context}, pool ${pool} (${Math.floor((100 * pool) / context)} %)`,
    wanted: `a pool of at least ${context} tokens on every rank, or a smaller context`,
    change: changeFor(node, pool),
    certain,
  };
}

function changeFor(node: NodeFacts, pool: number): string {
  switch (node.engine) {
    case 'sglang':
      return `Start every node with \`--context-length ${pool}\` or less, or enlarge the pool (\`--mem-fraction-static\`, \`--kv-cache-dtype\`, more GPUs)`;
    case 'vllm':
      return `Start with \`--max-model-len ${pool}\` or less, or enlarge the pool (\`--gpu-memory-utilization\`), and drop \`--num-gpu-blocks-override\``;
    case 'llamacpp':
      return 'Start with fewer slots (`-np`) or a larger `-c`';
    default:
      return `Advertise ${pool} tokens or fewer, or enlarge the pool`;
  }
}

function unknownPool(node: NodeFacts, context: number): string {
  const unsaid = best(node.poolUnsaid);
  const because =
    unsaid !== null
      ? unsaid.value
      : 'the pool is what is left of the GPU’s memory at the start, and only the running node or its startup log tells it';
  return `nothing here bounds the context (${context} tokens) by the pool; the pool is not checked: ${because}; ${askCommand(node)} would settle it`;
}
