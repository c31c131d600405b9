import { escapeControl } from '../base/text.js';

/**
 * What an adapter has to say to the operators. `unreachable`, `back`: a node. `restarted`, `version-changed`, `model-changed`,
 * `role-switched`, `pool-shrank`, `pool-grew`: it is not what it was when it was last read. `capacity-unknown`: it does not say a
 * number that would admit anything. `pair-mismatch`: nodes that must not be paired. `no-salt`, `no-prefill-count`,
 * `repeats-elsewhere`: what can't be done through what stands in front. `stalled`: what waits in it makes no progress.
 * `foreign-requests`: it works for somebody else too, past the gateway. `slots-hidden`: what it holds can't be seen.
 * `pool-exceeded`: it ran out of pool under requests that were counted to fit.
 * `corruption-said`: the engine itself says that KV pages were not what they had to be.
 */
export type NoticeKind =
  | 'unreachable'
  | 'back'
  | 'restarted'
  | 'version-changed'
  | 'model-changed'
  | 'role-switched'
  | 'pool-shrank'
  | 'pool-grew'
  | 'capacity-unknown'
  | 'pair-mismatch'
  | 'no-salt'
  | 'no-prefill-count'
  | 'repeats-elsewhere'
  | 'stalled'
  | 'foreign-requests'
  | 'slots-hidden'
  | 'pool-exceeded'
  | 'corruption-said';

export type NoticeSeverity = 'critical' | 'high' | 'medium' | 'low' | 'info';

/** Figures and names only: no prompt, no key, no room, no byte of an answer. */
export interface UpstreamNotice {
  readonly kind: NoticeKind;
  readonly severity: NoticeSeverity;
  /** Host and port of the node. */
  readonly node: string;
  /** One line. */
  readonly words: string;
}

export type NoticeSink = (notice: UpstreamNotice) => void;

const NAME_CHARACTERS_MAX = 100;

/** A name that an engine gave, such as its model's, as it may be shown: one line, not long, nothing that moves a cursor. */
export function shownName(name: string | null): string {
  return name === null ? 'none' : `\`${escapeControl(name.slice(0, NAME_CHARACTERS_MAX))}\``;
}

/** A figure as it may be shown. */
export function shownFigure(tokens: number | null): string {
  return tokens === null ? 'no number' : `${tokens} tokens`;
}

/** How a node is named in notices and capacities: host and port, without user, path or query. */
export function nodeName(url: URL): string {
  return url.host;
}
