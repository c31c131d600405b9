/** Which kind of KV pool a model takes, as far as its name tells. SGLang's checksum and canary cover only some kinds. */
import type { NodeFacts, Sourced } from '../facts.js';

export type PoolKind = 'plain' | 'latent' | 'sparse' | 'hybrid' | 'deepseek-v4' | 'minimax';

/** First match counts. Architectures (`DeepseekV3ForCausalLM`) and model names (`deepseek-ai/DeepSeek-V3`) alike. */
const KINDS: readonly (readonly [RegExp, PoolKind])[] = [
  [/deepseek[-_]?v4/i, 'deepseek-v4'],
  [/deepseek[-_]?v3[._-]?2|glm[-_]?5|glm[-_]?moe[-_]?dsa/i, 'sparse'],
  [/deepseek[-_]?(?:v2|v3|r1)|kimi|moonlight|longcat/i, 'latent'],
  [/minimax/i, 'minimax'],
  [
    /mamba|jamba|bamba|qwen3[-_.]?next|qwen3[._-]?5|falcon[-_]?h1|nemotron[-_]?h|granite[-_]?moe[-_]?hybrid|zamba/i,
    'hybrid',
  ],
  [
    /^(?:llama|mistral|mixtral|qwen2|qwen3|phi3|gemma|internlm2|baichuan)\w*For(?:CausalLM|ConditionalGeneration)$/i,
    'plain',
  ],
];

/** Null: the name tells nothing, which says nothing about the pool. */
export function poolKindOf(node: NodeFacts): Sourced<PoolKind> | null {
  for (const said of [...node.architectures, ...node.models]) {
    const kind = KINDS.find(([pattern]) => pattern.test(said.value))?.[1];
    if (kind !== undefined) return { value: kind, source: said.source };
  }
  return null;
}

/** Models of vLLM whose layers keep KV in groups of different kinds (hybrid memory allocator). */
const GROUPED =
  /mamba|jamba|bamba|qwen3[-_.]?next|qwen3[._-]?5|falcon[-_]?h1|nemotron[-_]?h|hybrid|zamba|deepseek[-_]?v4|gemma[-_]?[34]|gpt[-_]?oss|llama[-_]?4/i;

/** A name that says so; null: no name does, which is no proof of the opposite. */
export function groupedKvOf(node: NodeFacts): Sourced<string> | null {
  return [...node.architectures, ...node.models].find(({ value }) => GROUPED.test(value)) ?? null;
}
