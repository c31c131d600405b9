/**
 * A trace of a real run, held against the protocol. Each machine is stepped again with the events that it had, without a fault and with
 * every guard on, and must do what the trace says it did. A message can be taken only after it was sent; it may come twice, late, or never.
 * Machines are ordered by their messages alone: a record waits until what it needs has been seen, whatever its place in the file.
 */
import { leaseList, stepDecode } from '../handoff/decode.js';
import { stepGateway } from '../handoff/gateway.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import { brokenInvariant } from '../handoff/invariants.js';
import { type Actor, newView, resetView, shapeOf, type View } from '../handoff/layout.js';
import { E, EVENT_FIXED_WIDTH, EventKind, newOut, type Out } from '../handoff/messages.js';
import { stepPrefill } from '../handoff/prefill.js';
import { namedEffects } from '../handoff/step.js';
import {
  eventOf,
  type TraceEffect,
  traceEffects,
  type TraceLife,
  type TraceRecord,
  type TraceStep,
} from '../handoff/trace.js';

export interface Deviation {
  /** The number of the record that no allowed order explains. */
  readonly record: number;
  readonly words: string;
}

const STEPS = { gateway: stepGateway, prefill: stepPrefill, decode: stepDecode };
const TARGETS: Readonly<Record<string, Actor>> = {
  sendGateway: 'gateway',
  sendPrefill: 'prefill',
  sendDecode: 'decode',
};
/** Events that are messages of another actor. */
const MESSAGES: ReadonlySet<string> = new Set([
  'start',
  'abort',
  'lease',
  'drain',
  'committed',
  'complete',
  'reject',
  'drained',
  'prefillClosed',
  'started',
  'failing',
  'decodeClosed',
]);
/** Records of one machine that wait at once; with more of them the sender's part of the trace is missing. */
const WAITING_MAX = 100_000;

interface Machine {
  readonly view: View;
  readonly out: Out;
}

export class Conformance {
  /** Steps that were explained. */
  explained = 0;
  deviation: Deviation | null = null;
  readonly #machines = new Map<Actor, Machine>();
  readonly #waiting: Readonly<Record<Actor, TraceRecord[]>> = { gateway: [], prefill: [], decode: [] };
  /** Every message that was sent, by receiver and content. */
  readonly #sent = new Set<string>();
  /** Writes posted and not settled, by incarnation, slot and attempt. */
  readonly #onTheWire = new Map<string, number>();

  /** Takes the next record. Nothing more is looked at after the first deviation. */
  take(record: TraceRecord): void {
    if (this.deviation !== null) return;
    const queue = this.#waiting[record.actor];
    queue.push(record);
    if (queue.length > WAITING_MAX) this.#deviate(queue[0].n, `${WAITING_MAX} later records wait for it`);
    else if (queue.length === 1) this.#goOn();
  }

  /** After the last record: what still waits was never possible. */
  finish(): void {
    if (this.deviation !== null) return;
    const heads = Object.values(this.#waiting).flatMap(([head]) => (head === undefined ? [] : [head]));
    if (heads.length === 0) return;
    const first = heads.reduce((least, head) => (head.n < least.n ? head : least));
    this.#deviate(first.n, `${inWords(first)}, and nothing in the trace allows that: ${this.#missing(first)}`);
  }

  #deviate(record: number, words: string): void {
    this.deviation ??= { record, words };
  }

  #goOn(): void {
    for (let moved = true; moved && this.deviation === null; ) {
      moved = false;
      for (const queue of Object.values(this.#waiting)) {
        while (queue.length > 0 && this.deviation === null && this.#missing(queue[0]) === null) {
          const record = queue.shift() as TraceRecord;
          if ('life' in record) this.#begin(record);
          else this.#step(record);
          moved = true;
        }
      }
    }
  }

  /** What has to come first, in words; null: nothing. */
  #missing(record: TraceRecord): string | null {
    if ('life' in record) return null;
    const { actor, event } = record;
    if (!this.#machines.has(actor)) return `${actor} has not begun`;
    if (event === 'prefillDown' || event === 'decodeDown') {
      const peer = event === 'prefillDown' ? 'prefill' : 'decode';
      const machine = this.#machines.get(peer);
      const life = machine === undefined ? 0 : machine.view.cells[machine.view.at];
      return life >= (record.from ?? 0) ? null : `${peer} has no incarnation ${record.from ?? 0} yet`;
    }
    if (!MESSAGES.has(event)) return null;
    return this.#sent.has(messageKey(actor, eventOf(record))) ? null : 'it was never sent';
  }

  #begin({ actor, life, peer, slots, pages = 0, pagesPerSlot = 0, prefixes = false }: TraceLife): void {
    const view = newView(shapeOf(actor, { slots, pages, pagesPerSlot, prefixes }), { faults: 0, guards: ALL_GUARDS });
    resetView(view, life, peer);
    this.#machines.set(actor, { view, out: newOut(slots, pagesPerSlot) });
  }

  #step(record: TraceStep): void {
    const { view, out } = this.#machines.get(record.actor) as Machine;
    const event = eventOf(record);
    if (event[E.slot] < 0 || event[E.slot] >= view.shape.slots) {
      return this.#deviate(record.n, `${inWords(record)}, a slot that ${record.actor} does not have`);
    }
    if (record.event === 'settled' && !this.#settles(view, record)) {
      return this.#deviate(record.n, `${inWords(record)}, more writes than were posted`);
    }
    out.length = 0;
    STEPS[record.actor](view, event, out);
    const difference = differenceOf(traceEffects(out), record.effects);
    if (difference !== null) return this.#deviate(record.n, `${inWords(record)}: ${difference}`);
    const broken = brokenInvariant(view);
    if (broken !== null) return this.#deviate(record.n, `${inWords(record)}: ${broken.words}`);
    this.#remember(view, out);
    this.explained++;
  }

  #settles(view: View, { slot = 0, attempt = 0, pages = 0 }: TraceStep): boolean {
    const key = `${view.cells[view.at]} ${slot} ${attempt}`;
    const left = (this.#onTheWire.get(key) ?? 0) - pages;
    this.#onTheWire.set(key, left);
    return left >= 0;
  }

  #remember(view: View, out: Out): void {
    for (const [i, effect] of namedEffects(out).entries()) {
      if (effect.effect === 'post') {
        const key = `${view.cells[view.at]} ${effect.slot} ${effect.attempt}`;
        this.#onTheWire.set(key, (this.#onTheWire.get(key) ?? 0) + effect.pages);
      }
      const target = TARGETS[effect.effect];
      if (target !== undefined) this.#sent.add(messageKey(target, messageAt(view, out, i)));
    }
  }
}

/** The message that an effect sends, with the pages of a lease behind it as the runner appends them. */
function messageAt(view: View, out: Out, effect: number): Int32Array {
  const from = effect * (EVENT_FIXED_WIDTH + 1) + 1;
  const body = out.cells.subarray(from, from + EVENT_FIXED_WIDTH);
  const pairs = body[E.kind] === EventKind.lease ? body[E.count] : 0;
  const message = new Int32Array(EVENT_FIXED_WIDTH + 2 * pairs);
  message.set(body);
  if (pairs > 0) leaseList(view, body[E.slot], message, E.list);
  return message;
}

const messageKey = (target: Actor, message: Int32Array): string => `${target} ${message.join(' ')}`;

function inWords(record: TraceRecord): string {
  if ('life' in record) return `${record.actor} begins`;
  const attempt = record.attempt === undefined ? '' : `, attempt ${record.attempt}`;
  return `${record.actor} takes "${record.event}" for slot ${record.slot ?? 0}${attempt}`;
}

const KEYS: readonly (keyof TraceEffect)[] = [
  'effect',
  'kind',
  'slot',
  'attempt',
  'from',
  'to',
  'room',
  'tokens',
  'promptPages',
  'pages',
  'tenant',
  'salt',
  'code',
  'count',
];

function effectInWords(effect: TraceEffect): string {
  const fields = KEYS.slice(2).filter((key) => effect[key] !== undefined);
  const name = effect.kind === undefined ? effect.effect : `${effect.effect} "${effect.kind}"`;
  return `${name} (${fields.map((key) => `${key} ${effect[key]}`).join(', ')})`;
}

/** The first effect in which the two differ, in words; null: they are the same. */
function differenceOf(allowed: readonly TraceEffect[], did: readonly TraceEffect[]): string | null {
  for (let i = 0; i < Math.max(allowed.length, did.length); i++) {
    const [want, got] = [allowed[i], did[i]];
    if (want !== undefined && got !== undefined && KEYS.every((key) => want[key] === got[key])) continue;
    const wanted = want === undefined ? 'nothing more' : effectInWords(want);
    return `the protocol allows ${wanted}, the trace has ${got === undefined ? 'nothing more' : effectInWords(got)}`;
  }
  return null;
}
