/** What the handoff's world holds: who takes part, how much room there is, and how often things may go wrong. */
import type { Rules } from '../../handoff/layout.js';

export interface ScopeRequest {
  /** From 1. Also its salt. */
  readonly tenant: number;
  /** Pages of the prompt; one token a page, one page a chunk. 1 or 2. */
  readonly pages: number;
  /** What the first page of the prompt hashes to; used where prefixes are shared. */
  readonly hash: number;
}

export interface HandoffScope {
  /** Requests, submitted in any order, each to the lowest slot that is free. At most 4. */
  readonly requests: readonly ScopeRequest[];
  /** Requests at once. At most 3; a slot is used again when its request is over. */
  readonly slots: number;
  /** Pages of each pool. At most 7. */
  readonly prefillPages: number;
  readonly decodePages: number;
  /** The largest prompt that the gateway admits, in tokens. */
  readonly limit: number;
  /** More attempts that a request may make after its first. */
  readonly retries: number;
  /** Clients that leave, at any moment at which their request is open. */
  readonly aborts: number;
  readonly losses: number;
  /** Messages that are delivered and stay on the wire to be delivered again. */
  readonly repeats: number;
  readonly prefillCrashes: number;
  readonly decodeCrashes: number;
  /** Prefills that give up by themselves. */
  readonly abandons: number;
  /** Requests that name pages by a handle. */
  readonly handles: number;
  /** Page writes of which the header lands and the payload does not. */
  readonly tears: number;
  /** First pages of prompts are sealed, shared and evicted, in both pools. */
  readonly prefixes: boolean;
  /** Control messages that the wire holds at once; one too many is lost. */
  readonly messagesMax: number;
  readonly rules: Rules;
}

const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** The bounds of a verdict, in one sentence. */
export function scopeInWords(scope: HandoffScope): string {
  const tenants = new Set(scope.requests.map(({ tenant }) => tenant)).size;
  const pages = scope.requests.map((request) => request.pages).join(', ');
  const parts = [
    `${counted(tenants, 'tenant')}, ${counted(scope.requests.length, 'request')} (prompts of ${pages} pages) over ${counted(scope.slots, 'slot')}`,
    `prefill ${counted(scope.prefillPages, 'page')}, decode ${counted(scope.decodePages, 'page')}`,
    `the gateway admits ${counted(scope.limit, 'page')}`,
    `a wire of ${counted(scope.messagesMax, 'message')} in any order, page writes landing late and in any order`,
  ];
  const budgets: readonly (readonly [number, string, string?])[] = [
    [scope.aborts, 'client that leaves', 'clients that leave'],
    [scope.losses, 'message lost', 'messages lost'],
    [scope.repeats, 'message repeated', 'messages repeated'],
    [scope.prefillCrashes, 'restart of prefill', 'restarts of prefill'],
    [scope.decodeCrashes, 'restart of decode', 'restarts of decode'],
    [scope.abandons, 'prefill that gives up', 'prefills that give up'],
    [scope.retries, 'more attempt a request', 'more attempts a request'],
    [scope.handles, 'handle'],
    [scope.tears, 'torn write'],
  ];
  for (const [count, one, many] of budgets) if (count > 0) parts.push(counted(count, one, many));
  if (scope.prefixes) parts.push('prefixes sealed, shared and evicted in both pools');
  return parts.join('; ');
}
