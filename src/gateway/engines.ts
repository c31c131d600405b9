/** Which engine a request goes to. */
import { createHash, createHmac } from 'node:crypto';
import { assert } from '../base/assert.js';
import type { Prompt } from '../upstream/upstream.js';
import { AFFINITY_CHARACTERS, AFFINITY_SLACK_SHARE } from './bounds.js';

/** One engine that serves the model, is in service, and admits the prompt. */
export interface Candidate {
  readonly name: string;
  /** Tokens in flight: held, and asked for by what waits. */
  readonly loadTokens: number;
  /** Tokens of the decode pool; null: not known. */
  readonly poolTokens: number | null;
  /** Whether the request would not have its turn at once. */
  readonly wouldWait: boolean;
}

/**
 * What requests with the same beginning have in common, for one tenant: HMAC(salt of the tenant, the prompt's first
 * AFFINITY_CHARACTERS characters). Without the salt nobody can tell which prompts meet, so no tenant can aim at another's engine.
 */
export function affinityKey(salt: string, prompt: Prompt): Buffer {
  return createHmac('sha256', salt).update(promptHead(prompt)).digest();
}

function promptHead(prompt: Prompt): string {
  if (prompt.kind === 'text') return prompt.text.slice(0, AFFINITY_CHARACTERS);
  let head = '';
  for (const { role, content } of prompt.messages) {
    head += `${role}\n${content.slice(0, AFFINITY_CHARACTERS)}\n`;
    if (head.length >= AFFINITY_CHARACTERS) break;
  }
  return head.slice(0, AFFINITY_CHARACTERS);
}

const WEIGHT_BYTES = 6;

/** Rendezvous hashing: for each key every engine has a weight of its own, so that one that comes or goes moves its own keys only. */
function weight(key: Buffer, name: string): number {
  return createHash('sha256').update(key).update(name).digest().readUIntBE(0, WEIGHT_BYTES);
}

/**
 * The engine with the greatest weight for the key, where the tenant's prefix is cached; unless it is much fuller than the least
 * loaded one, by more than AFFINITY_SLACK_SHARE of its pool, or the request would wait there and not at the least loaded. That is
 * the one with the fewest tokens in flight, of those at which it would not wait, where there are any. There must be a candidate.
 * `key` is not asked for while there is no choice.
 */
export function chooseEngine<C extends Candidate>(candidates: readonly C[], key: () => Buffer): C {
  const [first] = candidates;
  assert(first !== undefined, 'an engine is chosen of at least one');
  if (candidates.length === 1) return first;
  const keyed = key();
  const ranked = candidates
    .map((candidate) => ({ candidate, weight: weight(keyed, candidate.name) }))
    .sort((a, b) => b.weight - a.weight)
    .map(({ candidate }) => candidate);
  const favourite = ranked[0]!;
  const least = ranked.reduce((best, each) => (isLessLoaded(each, best) ? each : best));
  if (favourite.wouldWait && !least.wouldWait) return least;
  const slack = (favourite.poolTokens ?? 0) * AFFINITY_SLACK_SHARE;
  return favourite.loadTokens - least.loadTokens > slack ? least : favourite;
}

function isLessLoaded(a: Candidate, b: Candidate): boolean {
  return a.wouldWait === b.wouldWait ? a.loadTokens < b.loadTokens : !a.wouldWait;
}
