/** What a guard of a node has found, in words for a finding: numbers and names only. */
import { type GuardName, GUARDS } from '../handoff/guards.js';
import { getSlot, type View } from '../handoff/layout.js';

export function guardNamed(guard: number, fallback: GuardName): GuardName {
  return GUARDS[guard] ?? fallback;
}

/** `checked`: what the page checks said last. */
export function decodeGuardWords(name: GuardName, view: View, slot: number, checked: string): string {
  switch (name) {
    case 'count':
      return `Expected prefill to complete ${getSlot(view, slot, 'tokens')} tokens of slot ${slot}, got ${getSlot(view, slot, 'completed')}`;
    case 'rejection':
      return `Expected slot ${slot} to need at most ${view.shape.pages} pages, got ${getSlot(view, slot, 'pages')}`;
    case 'salt':
      return saltWords('decode', slot);
    case 'lease':
      return `Expected slot ${slot} to name no pages but those of its own lease, got a handle`;
    default:
      return checked;
  }
}

export function prefillGuardWords(
  name: GuardName,
  view: View,
  slot: number,
  checked: string,
  poolTokens: number,
): string {
  switch (name) {
    case 'salt':
      return saltWords('prefill', slot);
    case 'tag':
    case 'checksum':
      return checked;
    default:
      return `Expected a prompt of at most ${poolTokens} tokens in slot ${slot} of prefill, got ${getSlot(view, slot, 'tokens')}`;
  }
}

export function gatewayGuardWords(name: GuardName, slot: number, tokens: number, limit: number): string {
  return name === 'usage'
    ? `Expected prefill and decode to count ${tokens} prompt tokens in slot ${slot}, got another count`
    : `Expected slot ${slot} to have at most ${limit} prompt tokens, got ${tokens}`;
}

export function lengthGuardWords(slot: number, decoded: number | null, streamed: number): string {
  return `Expected decode to end slot ${slot} after the ${streamed} tokens that were streamed, got ${decoded ?? 'no count'}`;
}

export function drainWords(slot: number, alarmMs: number): string {
  return `slot ${slot} has been draining for longer than ${alarmMs} ms; its pages stay out of use`;
}

function saltWords(node: 'prefill' | 'decode', slot: number): string {
  return `Expected slot ${slot} of ${node} to share sealed pages of its own tenant only, got a page of another`;
}
