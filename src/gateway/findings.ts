import type { ErrorCode } from '../base/errors.js';
import { effectiveLimit } from '../handoff/admission.js';
import { GUARDS } from '../handoff/guards.js';
import type { Capacity, PromptCounts } from '../upstream/upstream.js';
import { FINDINGS_PER_ID_MAX } from './bounds.js';
import { fingerprint } from './engine-words.js';
import type { Foreign } from './guard/channel.js';
import type { OutReason } from './rotation.js';
import type { Interval } from './tally.js';
import { isCount, type Suspicion } from './verdict.js';

/** As much of a finding as the gateway says; `findings/` has the whole of it, with the same fields. */
export interface GatewayFinding {
  readonly id: string;
  readonly severity: 'critical' | 'high' | 'medium' | 'low' | 'info';
  readonly title: string;
  readonly where: { readonly node: string; readonly source: string };
  readonly observed: string;
  readonly wanted: string;
  readonly change: string;
  readonly references: readonly string[];
  readonly certain: boolean;
}

export interface FindingSink {
  raise(finding: GatewayFinding): void;
}

/** Passes on the first few of each id: a fault that meets every request must not fill the memory. */
export class BoundedFindings implements FindingSink {
  readonly #sink: FindingSink;
  readonly #raised = new Map<string, number>();

  constructor(sink: FindingSink) {
    this.#sink = sink;
  }

  raise(finding: GatewayFinding): void {
    const count = (this.#raised.get(finding.id) ?? 0) + 1;
    if (count > FINDINGS_PER_ID_MAX) return;
    this.#raised.set(finding.id, count);
    this.#sink.raise(finding);
  }
}

/** The findings of one engine: what they say of `engine` they say of the one with this name. */
export function findingsOf(name: string, sink: FindingSink): FindingSink {
  return {
    raise: (finding) => {
      const { where } = finding;
      sink.raise(where.node === 'engine' ? { ...finding, where: { ...where, node: name } } : finding);
    },
  };
}

/** What the engine's own numbers say against each other: a context that no pool can hold, or a number nobody knows. */
export function capacityFindings(capacity: Capacity): GatewayFinding[] {
  const found: GatewayFinding[] = [];
  const { context, prefillPool, decodePool } = capacity;
  if (context !== null && prefillPool !== null && context > prefillPool) {
    found.push(smallPool('prefill', context, prefillPool, capacity));
  }
  if (context !== null && decodePool !== null && context > decodePool) {
    found.push(smallPool('decode', context, decodePool, capacity));
  }
  if (effectiveLimit(capacity) === null) found.push(unknownCapacity(capacity));
  return found;
}

function smallPool(role: 'prefill' | 'decode', context: number, pool: number, capacity: Capacity): GatewayFinding {
  const limit = effectiveLimit(capacity);
  const node = capacity.nodes.find((each) => each.role === role) ?? capacity.nodes[0];
  return {
    id: `small-${role}-pool`,
    severity: 'high',
    title: `The advertised context of ${context} tokens exceeds the ${role} pool of ${pool} tokens`,
    where: { node: node?.node ?? role, source: node?.source ?? 'configuration' },
    observed: `advertised context ${context}, ${role} pool ${pool}`,
    wanted: `a ${role} pool of at least ${context} tokens`,
    change: `Raise the ${role} pool or lower the context. Until then prompts above ${limit?.tokens ?? 0} tokens are refused.`,
    references: ['https://github.com/sgl-project/sglang/issues/30233'],
    certain: true,
  };
}

function unknownCapacity(capacity: Capacity): GatewayFinding {
  const said = (value: number | null): string => (value === null ? 'unknown' : String(value));
  const { context, prefillPool, decodePool } = capacity;
  return {
    id: 'capacity-unknown',
    severity: 'high',
    title: 'A capacity is not known or holds nothing, so every request is refused',
    where: { node: capacity.nodes[0]?.node ?? 'engine', source: capacity.nodes[0]?.source ?? 'configuration' },
    observed: `context ${said(context)}, prefill pool ${said(prefillPool)}, decode pool ${said(decodePool)}`,
    wanted: 'all three numbers, above zero',
    change: 'Make the engine say its pools, or configure them.',
    references: [],
    certain: true,
  };
}

/** An engine's numbers as they may be shown: what is no number might be anything. */
function shownCount(value: unknown): string {
  return isCount(value) ? String(value) : value === null || value === undefined ? 'not said' : 'no number';
}

function shownInterval({ least, most }: Interval): string {
  return least === most ? String(least) : `${least} to ${most}`;
}

const SUSPICION_WORDS: Readonly<Record<Suspicion, string>> = {
  short: 'the engine counted fewer than half of the prompt',
  roles: 'prefill and decode counted different prompts',
  empty: 'a finished answer of no token',
  nonsense: 'something that is no count, no text or no reason to finish',
};

/** The engine counted another prompt than the one that was admitted. Numbers only. `completion` is null where none was said. */
export function usageFinding(
  verdict: 'drift' | Suspicion,
  counted: Interval,
  said: PromptCounts,
  completion: number | null,
): GatewayFinding {
  const observed =
    `counted here ${shownInterval(counted)}, decode ${shownCount(said.promptTokens)}, prefill ${shownCount(said.prefillTokens)}, ` +
    `completion ${shownCount(completion)}`;
  if (verdict === 'drift') {
    return {
      id: 'usage-drift',
      severity: 'medium',
      title: 'An engine counted somewhat other tokens than were admitted; the answer was withheld',
      where: { node: 'engine', source: 'usage of one answer' },
      observed,
      wanted: 'equal counts',
      change: 'Compare the chat template and the tokenizer of the engine with those counted by here.',
      references: ['docs/ISOLATION.md'],
      certain: true,
    };
  }
  return {
    id: 'usage-mismatch',
    severity: 'critical',
    title: `An answer was withheld: ${SUSPICION_WORDS[verdict]}`,
    where: { node: 'engine', source: 'usage of one answer' },
    observed,
    wanted: 'equal counts, and at least one token of output',
    change:
      'Check the engine’s handoff: a short count is how foreign KV shows. Whether a sentinel failed too, `engine-out` says.',
    references: ['https://github.com/sgl-project/sglang/issues/30233'],
    certain: false,
  };
}

/** A live marker of another owner stood in an answer. The marker itself is a secret of its owner, so only its length is said. */
/** Both tenants by name, and places; never the text. */
export function foreignMarkerFinding(tenant: string, { hit, channel, at }: Foreign): GatewayFinding {
  return {
    id: 'foreign-marker',
    severity: 'critical',
    title: 'An answer held a marker of another owner; it was withheld, and the engine is out of rotation',
    where: { node: 'engine', source: `${channel} of one answer` },
    observed:
      `${hit.length} characters of a live marker of ${hit.marker.owner}, from its character ${hit.markerOffset} on, ` +
      `at character ${at} of an answer to ${tenant}, whose request did not hold them`,
    wanted: 'markers in answers to their owner only',
    change:
      'Keep the engine out until its handoff and caches are checked: what it held of one tenant has reached another.',
    references: ['docs/ISOLATION.md'],
    certain: true,
  };
}

const OUT_WORDS: Readonly<Record<OutReason, string>> = {
  'sentinel-failed': 'a sentinel of the gateway was not answered as it must be',
  unchecked: 'an answer was suspect and no sentinel could be sent',
  'foreign-marker': 'an answer held a live marker of another owner',
};

export function outFinding(reason: OutReason): GatewayFinding {
  return {
    id: 'engine-out',
    severity: 'critical',
    title: 'The engine left rotation; its open requests were ended',
    where: { node: 'engine', source: 'rotation' },
    observed: OUT_WORDS[reason],
    wanted: 'an engine whose answers are its requests’ own',
    change: 'See the finding before this one. The engine comes back by itself when self-tests have passed.',
    references: ['docs/ISOLATION.md'],
    certain: true,
  };
}

export function backFinding(): GatewayFinding {
  return {
    id: 'engine-back',
    severity: 'info',
    title: 'The engine is back in rotation',
    where: { node: 'engine', source: 'rotation' },
    observed: 'self-tests have passed',
    wanted: 'to know what took it out',
    change: 'Look for its cause all the same.',
    references: ['docs/ISOLATION.md'],
    certain: true,
  };
}

/** Fewer or more tokens of output came than the engine says that it made. The answer says what came. */
export function completionFinding(came: number, said: number): GatewayFinding {
  return {
    id: 'completion-drift',
    severity: 'low',
    title: 'An engine counted other tokens of output than came',
    where: { node: 'engine', source: 'usage of one answer' },
    observed: `came ${came}, said ${shownCount(said)}`,
    wanted: 'equal counts',
    change: 'None for safety; figures of the engine and of the gateway will differ.',
    references: [],
    certain: true,
  };
}

/** A request failed in the engine. `words` are those of the engine's text that may be shown. */
export function engineErrorFinding(code: ErrorCode, guard: string | null, text: string, words: string): GatewayFinding {
  const guarded = (GUARDS as readonly (string | null)[]).includes(guard) ? `, guard ${guard}` : '';
  const said = text === '' ? 'no words' : `${text.length} characters, fingerprint ${fingerprint(text)}: ${words}`;
  return {
    id: 'engine-error',
    severity: code === 'context_length_exceeded' || code === 'verification_failed' ? 'medium' : 'low',
    title: `The engine ended a request with ${code}`,
    where: { node: 'engine', source: 'error of one request' },
    observed: `${code}${guarded}; ${said}`,
    wanted: 'a whole answer',
    change: 'See the engine’s own log; its text may quote prompts, so only its known words are shown here.',
    references: ['docs/ERRORS.md'],
    certain: true,
  };
}

/** Something in the gateway threw what it should not have. The message may hold anything, so only the kind is said. */
export function internalFinding(thrown: unknown): GatewayFinding {
  const kind = thrown instanceof Error ? thrown.name : typeof thrown;
  return {
    id: 'gateway-internal-error',
    severity: 'medium',
    title: 'The gateway failed while it handled a request',
    where: { node: 'gateway', source: 'request ladder' },
    observed: `an error of kind ${kind}`,
    wanted: 'no unexpected error',
    change: 'Report it with the steps that lead to it.',
    references: [],
    certain: true,
  };
}
