/** `GET /v1/models`, the one answer that every engine gives. */
import type { EngineName, Fact, Reading } from './reading.js';
import { asList, asShape, asText, asTokens, field, type Shape } from './shapes.js';

const OWNERS: Readonly<Record<string, EngineName>> = {
  sglang: 'sglang',
  vllm: 'vllm',
  llamacpp: 'llamacpp',
  cofferdam: 'cofferdam',
};

/** Models of one list that are looked at: adapters come as models too. */
export const MODELS_MAX = 1000;

/** Null: it is no list of models. Adapters' cards (with a parent) say nothing of the node. */
export function readModels(json: unknown): Reading | null {
  const shape = asShape(json);
  if (shape === null || field(shape, 'object') !== 'list' || !Array.isArray(field(shape, 'data'))) return null;
  const facts: Fact[] = [];
  let engine: EngineName | null = null;
  for (const item of asList(field(shape, 'data')).slice(0, MODELS_MAX)) {
    const card = asShape(item);
    if (card === null) continue;
    const owner = field(card, 'owned_by');
    if (typeof owner === 'string' && Object.hasOwn(OWNERS, owner)) engine = OWNERS[owner]!;
    if (asText(field(card, 'parent')) === null) facts.push(...cardFacts(card));
  }
  return { engine, facts };
}

function cardFacts(card: Shape): Fact[] {
  const facts: Fact[] = [];
  const name = asText(field(card, 'id'));
  if (name !== null) facts.push({ kind: 'model', name });
  const length = asTokens(field(card, 'max_model_len')) ?? asTokens(field(card, 'context_length'));
  if (length !== null) facts.push({ kind: 'advertised', tokens: length });
  const meta = asShape(field(card, 'meta'));
  if (meta !== null) {
    const context = asTokens(field(meta, 'n_ctx'));
    if (context !== null && length === null) facts.push({ kind: 'advertised', tokens: context });
    const trained = asTokens(field(meta, 'n_ctx_train'));
    if (trained !== null) facts.push({ kind: 'context-trained', tokens: trained });
  }
  return facts;
}
