/** One actor's record with its `step`, and the effects carried out in order. What every runner shares. */
import { stepDecode } from '../handoff/decode.js';
import { stepGateway } from '../handoff/gateway.js';
import { everyPageIsAccountedFor, firstBroken } from '../handoff/invariants.js';
import {
  type Actor,
  newView,
  resetView,
  type Rules,
  type ShapeOptions,
  shapeOf,
  type View,
} from '../handoff/layout.js';
import { E, EFFECT_WIDTH, EVENT_FIXED_WIDTH, newOut, type Out } from '../handoff/messages.js';
import { stepPrefill } from '../handoff/prefill.js';
import { assert } from '../base/assert.js';

const STEPS = { gateway: stepGateway, prefill: stepPrefill, decode: stepDecode };

export class Machine {
  readonly view: View;
  /** Sees each event and what followed of it, before any of it is carried out. Costs nothing while it is null. */
  tap: ((event: Int32Array, out: Out) => void) | null = null;
  readonly #step: (view: View, event: Int32Array, out: Out) => void;
  readonly #carryOut: (effect: number, body: Int32Array) => void;
  /** Effect buffers by depth: carrying out an effect may raise a local event. */
  readonly #outs: Out[] = [];
  readonly #local: Int32Array;
  #depth = 0;

  constructor(
    actor: Actor,
    options: ShapeOptions,
    rules: Rules,
    incarnation: number,
    peer: number,
    carryOut: (effect: number, body: Int32Array) => void,
  ) {
    this.view = newView(shapeOf(actor, options), rules);
    resetView(this.view, incarnation, peer);
    this.#step = STEPS[actor];
    this.#carryOut = carryOut;
    this.#local = new Int32Array(EVENT_FIXED_WIDTH + 2 * (options.pagesPerSlot ?? 0));
  }

  /** Steps the record and carries out what follows, in order. An event for a slot outside the record changes nothing. */
  step(event: Int32Array): void {
    const slot = event[E.slot] ?? 0;
    if (slot < 0 || slot >= this.view.shape.slots) return;
    const out = this.#outAt(this.#depth);
    out.length = 0;
    this.#step(this.view, event, out);
    if (this.tap !== null) this.tap(event, out);
    this.#depth++;
    try {
      for (let i = 0; i < out.length; i++) {
        const at = i * EFFECT_WIDTH;
        this.#carryOut(out.cells[at] ?? 0, out.cells.subarray(at + 1, at + EFFECT_WIDTH));
      }
    } finally {
      this.#depth--;
    }
  }

  /** A cleared event for a local occurrence; filled in by the caller and passed to `step` at once. */
  event(kind: number, slot: number, attempt: number): Int32Array {
    const event = this.#depth === 0 ? this.#local : new Int32Array(this.#local.length);
    event.fill(0);
    event[E.kind] = kind;
    event[E.slot] = slot;
    event[E.attempt] = attempt;
    return event;
  }

  raise(kind: number, slot: number, attempt: number, code = 0): void {
    const event = this.event(kind, slot, attempt);
    event[E.code] = code;
    this.step(event);
  }

  /** Every invariant of the record; for the moments when the node is idle. With a fault on, only that no page is lost. */
  assertHolds(): void {
    const { view } = this;
    const isFaulty = view.rules.faults !== 0 && view.shape.pages > 0;
    const broken = isFaulty ? everyPageIsAccountedFor(view) : firstBroken(view);
    assert(broken === null, broken ?? '');
  }

  #outAt(depth: number): Out {
    const known = this.#outs[depth];
    if (known !== undefined) return known;
    const made = newOut(this.view.shape.slots, this.view.shape.pagesPerSlot);
    this.#outs[depth] = made;
    return made;
  }
}

/** The message inside an effect as an event of its own, with room for `pairs` pairs behind it. */
export function messageOf(body: Int32Array, pairs = 0): Int32Array {
  const event = new Int32Array(EVENT_FIXED_WIDTH + 2 * pairs);
  event.set(body.subarray(0, EVENT_FIXED_WIDTH));
  return event;
}
