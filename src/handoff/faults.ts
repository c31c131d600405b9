import { type GuardName, guardBits } from './guards.js';

/**
 * The catalogue of faults: each a named deviation from the protocol, taken from a public incident, that can be switched on in the
 * code that runs. A fault makes something wrong happen; the guards named stop it, each by itself.
 */
export const FAULTS = [
  'rejected-stays-alive',
  'count-unchecked',
  'silent-abort',
  'reuse-before-drain',
  'timeout-authorises-reuse',
  'room-collision',
  'stale-handle',
  'retry-keeps-attempt',
  'unfenced-restart',
  'torn-write',
  'unannounced-rejection',
  'unsalted-prefix',
  'prefix-hash-collision',
] as const;

export type FaultName = (typeof FAULTS)[number];
export type FaultBits = number;

export function faultBit(name: FaultName): FaultBits {
  return 1 << FAULTS.indexOf(name);
}

export function isFaultName(name: string): name is FaultName {
  return (FAULTS as readonly string[]).includes(name);
}

export function faultBits(names: Iterable<FaultName>): FaultBits {
  let bits = 0;
  for (const name of names) bits |= faultBit(name);
  return bits;
}

export function faultsOf(bits: FaultBits): FaultName[] {
  return FAULTS.filter((_, index) => (bits >> index) & 1);
}

/** What a replay of the fault ends in. `answered`: the requester got its own right answer. */
export type Outcome = 'refused' | 'failed-closed' | 'shared' | 'leaked' | 'answered' | 'hung';

export interface Fault {
  readonly name: FaultName;
  /** What the code does that it must not do. */
  readonly deviation: string;
  /** What has to happen for it to matter. */
  readonly trigger: string;
  /** The guards that stop it, each alone. */
  readonly guards: readonly GuardName[];
  /** What the other tenant would see with those guards off. */
  readonly seen: string;
  readonly source: string;
  /** True: the trigger needs a prefill pool below the context. */
  readonly needsSmallPrefill: boolean;
  /** The scope of `verify` in which it can be seen, where that is not `faults`. */
  readonly scope?: string;
  /** What `replay` must find with every guard off, and with every guard on. */
  readonly expected: { readonly off: Outcome; readonly on: Outcome };
}

export const CATALOGUE: Readonly<Record<FaultName, Fault>> = {
  'rejected-stays-alive': {
    name: 'rejected-stays-alive',
    deviation:
      'Prefill rejects a prompt larger than its pool, swaps it for a one-token placeholder and goes on with the hand-off.',
    trigger: 'A prompt longer than the prefill pool that nothing refused before.',
    guards: ['admission', 'rejection', 'count', 'checksum', 'tag', 'usage'],
    seen: 'A 200 whose text continues what is left of the last owner of the pages.',
    source: 'SGLang #30233; the public incident of 27 August to 9 September 2026',
    needsSmallPrefill: true,
    scope: 'oversized',
    expected: { off: 'leaked', on: 'refused' },
  },
  'count-unchecked': {
    name: 'count-unchecked',
    deviation: 'Prefill completes with fewer pages than were admitted and says how many; decode does not compare.',
    trigger: 'A prompt of more than one chunk.',
    guards: ['count', 'checksum', 'tag', 'usage'],
    seen: 'An answer that continues stale pages behind the first chunk.',
    source: 'SGLang #38704 (the missing check of the transferred token count)',
    needsSmallPrefill: false,
    expected: { off: 'leaked', on: 'failed-closed' },
  },
  'silent-abort': {
    name: 'silent-abort',
    deviation: 'Prefill gives up in the middle of a transfer and reports a complete one, with the full count.',
    trigger: 'A prefill that fails after its first chunk.',
    guards: ['checksum', 'tag'],
    seen: 'A 200 over pages of which only the first are its own.',
    source: 'SGLang #28651',
    needsSmallPrefill: false,
    scope: 'alone',
    expected: { off: 'leaked', on: 'failed-closed' },
  },
  'reuse-before-drain': {
    name: 'reuse-before-drain',
    deviation: 'Decode gives the pages of an aborted transfer back at once, while writes are still on the wire.',
    trigger: 'A client that leaves in mid-transfer, and another tenant that is given the same pages.',
    guards: ['drain', 'tag'],
    seen: "The other tenant's late pages land in the middle of one's own prompt.",
    source: 'SGLang #24527',
    needsSmallPrefill: false,
    expected: { off: 'leaked', on: 'answered' },
  },
  'timeout-authorises-reuse': {
    name: 'timeout-authorises-reuse',
    deviation: 'A drain that takes too long ends by a timer: the pages go back without proof that the wire is quiet.',
    trigger: 'An aborted transfer whose writes are held up for longer than the timeout.',
    guards: ['drain', 'tag'],
    seen: 'As with reuse before drain, later.',
    source: 'SGLang releases v0.5.19 and v0.5.20: deferred release with a timeout, described as a stopgap',
    needsSmallPrefill: false,
    expected: { off: 'leaked', on: 'answered' },
  },
  'room-collision': {
    name: 'room-collision',
    deviation: 'Two live requests share a bootstrap room, and decode matches messages of prefill by the room alone.',
    trigger: 'Two requests in transfer at once.',
    // Count and usage stop it where the two prompts differ in length, as nearly all do.
    guards: ['lease', 'count', 'checksum', 'tag', 'usage'],
    seen: "Another request's completion starts one's own decode over pages that nobody wrote for it.",
    source: 'SGLang #17259, #40125',
    needsSmallPrefill: false,
    expected: { off: 'leaked', on: 'answered' },
  },
  'stale-handle': {
    name: 'stale-handle',
    deviation: 'Decode takes the pages that a handle names, whoever sends it and whatever became of them.',
    trigger: 'A request that carries the transfer handle of an earlier one.',
    guards: ['policy', 'lease', 'tag'],
    seen: "The answer to somebody else's prompt.",
    source: 'vLLM #52234',
    needsSmallPrefill: false,
    scope: 'handles',
    expected: { off: 'leaked', on: 'refused' },
  },
  'retry-keeps-attempt': {
    name: 'retry-keeps-attempt',
    deviation: 'A retry keeps the attempt number, so messages of the first attempt speak for the second.',
    trigger: 'A prefill that restarts after it completed, and whose completion is repeated.',
    guards: ['lease', 'checksum', 'tag'],
    seen: 'A decode that starts before the second transfer has written anything.',
    source: 'TensorRT-LLM #15799 (attempt ids and endpoint epochs as the remedy)',
    needsSmallPrefill: false,
    scope: 'retries',
    expected: { off: 'leaked', on: 'failed-closed' },
  },
  'unfenced-restart': {
    name: 'unfenced-restart',
    deviation:
      'When prefill restarts, decode frees its leases but leaves the registration of the dead incarnation open.',
    trigger: 'A prefill that dies with writes on the wire.',
    guards: ['fence', 'tag'],
    seen: 'Writes of the dead incarnation land in pages lent to another tenant.',
    source: 'SGLang #27696 (stale registrations after memory was released and resumed)',
    needsSmallPrefill: false,
    scope: 'restarts',
    expected: { off: 'leaked', on: 'answered' },
  },
  'torn-write': {
    name: 'torn-write',
    deviation: 'The header of a page lands and its payload does not.',
    trigger: 'A page write that the transport tears.',
    guards: ['checksum'],
    seen: "One's own tag over the last owner's keys and values.",
    source: 'LMCache #2706 (a read and a write stream race on the same page)',
    needsSmallPrefill: false,
    scope: 'alone',
    expected: { off: 'leaked', on: 'failed-closed' },
  },
  'unannounced-rejection': {
    name: 'unannounced-rejection',
    deviation: 'Prefill refuses, and decode is not told: it keeps the pages of the whole prompt.',
    trigger: 'Prompts longer than the prefill pool that nothing refused before.',
    guards: ['admission', 'rejection'],
    seen: 'Nothing of another tenant, but soon no pages for anybody.',
    source: 'vLLM #41269 (the mirror image: decode refuses and prefill keeps its pages)',
    needsSmallPrefill: true,
    scope: 'oversized',
    expected: { off: 'hung', on: 'refused' },
  },
  'unsalted-prefix': {
    name: 'unsalted-prefix',
    deviation: 'A sealed prefix page is shared whatever tenant sealed it.',
    trigger: 'Two tenants with the same beginning of a prompt.',
    guards: ['salt', 'tag'],
    seen: "Cached tokens and a faster first token for somebody else's prompt.",
    source: 'CacheProbe (arXiv 2605.30613)',
    needsSmallPrefill: false,
    scope: 'prefixes',
    expected: { off: 'shared', on: 'answered' },
  },
  'prefix-hash-collision': {
    name: 'prefix-hash-collision',
    deviation: 'A sealed prefix page is shared on a weak hash, without comparing tokens.',
    trigger: 'Two prompts whose hashes collide.',
    guards: ['salt', 'tag'],
    seen: "An answer that was computed over somebody else's prefix, and repeats it.",
    source: 'CVE-2025-25183',
    needsSmallPrefill: false,
    scope: 'prefixes',
    expected: { off: 'leaked', on: 'answered' },
  },
};

/** The guards that stop these faults: what `--fault` alone turns off. */
export function guardsAgainst(faults: Iterable<FaultName>): number {
  let bits = 0;
  for (const name of faults) bits |= guardBits(CATALOGUE[name].guards);
  return bits;
}
