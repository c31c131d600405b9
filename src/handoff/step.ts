/**
 * The friendly form, for tests and docs: `step(state, event) -> { state, effects }`, with names instead of numbers. The hot form
 * (`stepGateway`, `stepPrefill`, `stepDecode`) does the work; this one copies, names and allocates.
 */
import { assert } from '../base/assert.js';
import { stepDecode } from './decode.js';
import { stepGateway } from './gateway.js';
import type { View } from './layout.js';
import {
  E,
  EFFECT_WIDTH,
  EffectKind,
  EVENT_FIXED_WIDTH,
  EventKind,
  type EventKindName,
  effectName,
  eventName,
  newOut,
  type Out,
} from './messages.js';
import { stepPrefill } from './prefill.js';

/** Fields of an event by name; what is left out is 0. */
export interface NamedEvent {
  readonly kind: EventKindName;
  readonly slot?: number;
  readonly attempt?: number;
  readonly from?: number;
  readonly to?: number;
  readonly room?: number;
  readonly tokens?: number;
  readonly promptPages?: number;
  readonly pages?: number;
  readonly tenant?: number;
  readonly salt?: number;
  readonly code?: number;
  /** (page, epoch) or (page, hash) or (place, hash). */
  readonly list?: readonly (readonly [number, number])[];
}

export interface NamedEffect {
  readonly effect: string;
  /** The kind of message, where the effect sends one. */
  readonly kind: string | null;
  readonly slot: number;
  readonly attempt: number;
  readonly from: number;
  readonly to: number;
  readonly room: number;
  readonly tokens: number;
  readonly promptPages: number;
  readonly pages: number;
  readonly tenant: number;
  readonly salt: number;
  readonly code: number;
  readonly count: number;
}

/** Packs a named event into cells. */
export function packEvent(event: NamedEvent): Int32Array {
  const list = event.list ?? [];
  const cells = new Int32Array(EVENT_FIXED_WIDTH + 2 * list.length);
  for (const [name, value] of Object.entries(event)) {
    if (name === 'kind') cells[E.kind] = EventKind[event.kind];
    else if (name !== 'list') cells[E[name as keyof typeof E]] = value as number;
  }
  cells[E.count] = list.length;
  for (const [i, [first, second]] of list.entries()) {
    cells[E.list + 2 * i] = first;
    cells[E.list + 2 * i + 1] = second;
  }
  return cells;
}

/** The effects of one step, by name. */
export function namedEffects(out: Out): NamedEffect[] {
  const effects: NamedEffect[] = [];
  for (let i = 0; i < out.length; i++) {
    const at = i * EFFECT_WIDTH;
    const field = (name: keyof typeof E): number => out.cells[at + 1 + E[name]];
    const code = out.cells[at];
    const isMessage =
      code === EffectKind.sendGateway || code === EffectKind.sendPrefill || code === EffectKind.sendDecode;
    effects.push({
      effect: effectName(code),
      kind: isMessage ? eventName(field('kind')) : null,
      slot: field('slot'),
      attempt: field('attempt'),
      from: field('from'),
      to: field('to'),
      room: field('room'),
      tokens: field('tokens'),
      promptPages: field('promptPages'),
      pages: field('pages'),
      tenant: field('tenant'),
      salt: field('salt'),
      code: field('code'),
      count: field('count'),
    });
  }
  return effects;
}

/** One step of whichever actor the record belongs to, on a copy: the argument is left as it was. */
export function step(state: View, event: NamedEvent): { state: View; effects: NamedEffect[] } {
  const { shape, rules } = state;
  const cells = state.cells.slice(state.at, state.at + shape.width);
  const next: View = { cells, at: 0, shape, rules };
  const out = newOut(shape.slots, shape.pagesPerSlot);
  const packed = packEvent(event);
  assert(packed[E.slot] >= 0 && packed[E.slot] < shape.slots, 'an event names a slot of the record');
  if (shape.actor === 'gateway') stepGateway(next, packed, out);
  else if (shape.actor === 'prefill') stepPrefill(next, packed, out);
  else stepDecode(next, packed, out);
  return { state: next, effects: namedEffects(out) };
}
