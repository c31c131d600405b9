/** What one llama-server is and holds, put together from its answers. Pure: nothing here asks, and nothing here waits. */
import { readModels } from '../models.js';
import type { Fact, Reading } from '../reading.js';
import { asList, asShape, field } from '../shapes.js';
import { readProps, readSlots } from './read.js';

/** Bodies as they came; null: that endpoint did not answer with 200. */
export interface LlamaAnswers {
  readonly props: string | null;
  readonly slots: string | null;
  readonly models: string | null;
}

/**
 * How the slots lie in the KV pool. `unified`: they share it, so that one request can fill it and end all others. `split`: each
 * has its own part. The server does not say; unless an operator does, both limits hold.
 */
export type LlamaLayout = 'unified' | 'split' | 'unknown';

export interface LlamaKnown {
  readonly layout: LlamaLayout;
  /** Tokens of the shared pool, as the operator says; null: what one slot takes. */
  readonly pool: number | null;
}

export interface LlamaSlot {
  readonly id: number;
  readonly isProcessing: boolean;
}

export interface LlamaState {
  readonly version: string | null;
  readonly models: readonly string[];
  /** What one request may fill, prompt and output; null: not said. */
  readonly context: number | null;
  /** What all requests together may fill; null: not known. */
  readonly pool: number | null;
  /** Null: not said. */
  readonly slotCount: number | null;
  /** Null: `/slots` is off or does not answer. */
  readonly slots: readonly LlamaSlot[] | null;
  readonly drafts: boolean;
  /** Why the context or the pool is not known; empty where both are. */
  readonly unknown: readonly string[];
}

/** Draft tokens of speculative decoding take cells of the pool until they are judged: for each slot, at the most. */
export const DRAFT_TOKENS_MAX = 64;

export function readLlama(answers: LlamaAnswers, known: LlamaKnown): LlamaState {
  const props = json(answers.props);
  const reading = readProps(props);
  const slotsJson = json(answers.slots);
  const told = factOf(reading, 'slots');
  const slots = readSlots(slotsJson) === null ? null : slotsOf(slotsJson);
  const each = leastOf(told?.contextEach ?? null, slots === null ? null : leastContext(slotsJson));
  const slotCount = told === null || each === null ? null : told.count;
  const drafts = asList(slotsJson).some((slot) => field(asShape(slot) ?? {}, 'speculative') === true);
  return {
    version: factOf(reading, 'version')?.text ?? null,
    models: modelsOf(reading, json(answers.models)),
    context: each,
    pool: each === null || slotCount === null ? null : poolOf(each, slotCount, drafts, known),
    slotCount,
    slots,
    drafts,
    unknown: each === null || slotCount === null ? ['/props does not say what its slots hold'] : [],
  };
}

/** What all requests together may take. Draft tokens come on top of what is counted, so they are taken off. */
function poolOf(each: number, slotCount: number, drafts: boolean, known: LlamaKnown): number | null {
  const whole = known.layout === 'split' ? each * slotCount : (known.pool ?? each);
  const left = whole - (drafts ? DRAFT_TOKENS_MAX * slotCount : 0);
  return left > 0 ? left : null;
}

/** Its models by every name that it lists: an alias is answered for too. */
function modelsOf(props: Reading | null, models: unknown): string[] {
  const listed = (readModels(models)?.facts ?? []).flatMap((fact) => (fact.kind === 'model' ? [fact.name] : []));
  const shown = factOf(props, 'model')?.name;
  return listed.length > 0 || shown === undefined ? listed : [shown];
}

function slotsOf(value: unknown): LlamaSlot[] | null {
  const slots: LlamaSlot[] = [];
  for (const item of asList(value)) {
    const slot = asShape(item) ?? {};
    const id = field(slot, 'id');
    const isProcessing = field(slot, 'is_processing');
    if (typeof id !== 'number' || !Number.isSafeInteger(id) || typeof isProcessing !== 'boolean') return null;
    slots.push({ id, isProcessing });
  }
  return slots;
}

/** The least that any slot takes; 0 or nonsense of one of them makes it unknown through the props, not here. */
function leastContext(value: unknown): number | null {
  const sizes = asList(value).map((slot) => field(asShape(slot) ?? {}, 'n_ctx'));
  const known = sizes.filter((size): size is number => Number.isSafeInteger(size) && (size as number) > 0);
  return known.length === 0 ? null : Math.min(...known);
}

function leastOf(first: number | null, second: number | null): number | null {
  if (first === null) return null;
  return second === null ? first : Math.min(first, second);
}

function json(body: string | null): unknown {
  if (body === null) return null;
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

function factOf<Kind extends Fact['kind']>(reading: Reading | null, kind: Kind): Extract<Fact, { kind: Kind }> | null {
  const facts = reading?.facts ?? [];
  return facts.find((fact): fact is Extract<Fact, { kind: Kind }> => fact.kind === kind) ?? null;
}
