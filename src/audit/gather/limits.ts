/** The largest prompt served: as the node says it, or as its engine computes it from context and pool. */
import { best, poolOf } from '../ask.js';
import type { NodeFacts, Said, Sourced } from '../facts.js';

/** SGLang takes five tokens off, and refuses what is as long as the rest: read in 0.5.18 to 0.5.23. */
const SGLANG_RESERVE = 7;

/** `refused`: the smallest length that the node refuses. */
export function acceptLimits(node: NodeFacts, refused: Said<number>): Said<number> {
  const computed = computedLimit(node);
  const said = refused.map(({ value, source }): Sourced<number> => ({ value: value - 1, source }));
  const [first] = said;
  if (computed === null) return said;
  if (first === undefined) return [computed];
  // The node speaks for its first rank; where another one is smaller, that one decides.
  const severalRanks = node.pool.some(({ value }) => value.rank !== null);
  return severalRanks && computed.value < first.value ? [computed, ...said] : said;
}

function computedLimit(node: NodeFacts): Sourced<number> | null {
  const context = best(node.advertised);
  const pool = poolOf(node);
  if (context === null || pool === null || pool.value.estimate) return null;
  const smaller = Math.min(context.value, pool.value.tokens);
  const { source } = pool.value.tokens < context.value ? pool : context;
  switch (node.engine) {
    case 'sglang':
      return smaller > SGLANG_RESERVE ? { value: smaller - SGLANG_RESERVE, source } : null;
    // A prompt of p tokens with one of output takes p slots, and p may be one less than the context.
    case 'vllm':
      return { value: Math.min(context.value - 1, pool.value.tokens), source };
    case 'llamacpp':
    case 'cofferdam':
      return { value: Math.min(context.value - 1, pool.value.tokens), source };
    default:
      return null;
  }
}
