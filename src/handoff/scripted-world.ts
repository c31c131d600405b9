/**
 * The three machines and what lies between them, moved by hand: a control wire, one-sided writes that land when the script says so,
 * and decode's pages with the tag and payload that was last written. For tests that tell one story; the checker tells all of them.
 */
import { leaseList, Verdict } from './decode.js';
import type { FaultName } from './faults.js';
import { isStreaming } from './gateway.js';
import type { GuardName } from './guards.js';
import { newView } from './layout.js';
import type { EventKind, EventKindName } from './messages.js';
import { Scripted } from './scripted.js';
import type { NamedEffect, NamedEvent } from './step.js';

interface Write {
  readonly slot: number;
  readonly attempt: number;
  readonly place: number;
  readonly page: number;
  readonly epoch: number;
  readonly incarnation: number;
}

interface Tag extends Write {
  /** False: the header landed and the payload did not. */
  readonly isWhole: boolean;
}

interface Message {
  readonly to: 'gateway' | 'prefill' | 'decode';
  readonly event: NamedEvent;
}

export interface WorldOptions {
  readonly faults: readonly FaultName[];
  readonly guards: readonly GuardName[];
  readonly prefillPages: number;
  readonly decodePages: number;
}

const MESSAGES_MAX = 1000;

/** One token a page; two slots. */
export class ScriptedWorld {
  readonly gateway: Scripted;
  prefill: Scripted;
  readonly decode: Scripted;
  readonly wire: Message[] = [];
  readonly writes: Write[] = [];
  readonly tags: Map<number, Tag> = new Map();
  readonly registered: Set<number> = new Set([1]);
  /** A token reached the client that was computed over a page that was not the request's own. */
  hasLeaked = false;
  readonly #options: WorldOptions;

  constructor(options: WorldOptions) {
    this.#options = options;
    const { faults, guards, prefillPages, decodePages } = options;
    this.gateway = new Scripted('gateway', { faults, guards });
    this.prefill = new Scripted('prefill', { faults, guards, pages: prefillPages });
    this.decode = new Scripted('decode', { faults, guards, pages: decodePages });
  }

  submit(slot: number, pages: number, limit: number, retries = 0): void {
    const size = { tokens: pages, promptPages: pages, pages };
    this.send('gateway', {
      kind: 'submit',
      slot,
      room: slot + 1,
      tenant: slot + 1,
      code: limit,
      from: retries,
      ...size,
    });
    this.deliver();
  }

  /** Delivers every message on the wire, and those that come of them. */
  deliver(): void {
    for (let count = 0; count < MESSAGES_MAX; count++) {
      const message = this.wire.shift();
      if (message === undefined) return;
      this.send(message.to, message.event);
    }
    throw new Error(`more than ${MESSAGES_MAX} messages were delivered at once`);
  }

  send(to: Message['to'], event: NamedEvent): void {
    const actor = this[to];
    actor.do(event);
    for (const effect of actor.effects) this.#carryOut(effect);
  }

  /** A local event of prefill or decode, under the attempt that the slot is in. */
  local(to: 'prefill' | 'decode', kind: EventKindName, slot: number, more: Partial<NamedEvent> = {}): void {
    this.send(to, { kind, slot, attempt: this[to].slot('attempt', slot), ...more });
  }

  #carryOut(effect: NamedEffect): void {
    if (effect.effect === 'post') this.#post(effect);
    else if (effect.effect === 'revoke') this.registered.delete(effect.from);
    else if (effect.effect === 'register') this.registered.add(effect.from);
    if (!effect.effect.startsWith('send')) return;
    const { effect: name, kind, count, ...fields } = effect;
    const list: [number, number][] = [];
    if (kind === 'lease') {
      const cells = new Int32Array(2 * count);
      leaseList(this.decode.state, effect.slot, cells, 0);
      for (let i = 0; i < count; i++) list.push([cells[2 * i], cells[2 * i + 1]]);
    }
    const to = name === 'sendGateway' ? 'gateway' : name === 'sendPrefill' ? 'prefill' : 'decode';
    this.wire.push({ to, event: { ...fields, kind: kind as keyof typeof EventKind, list } });
  }

  #post(effect: NamedEffect): void {
    const { slot, promptPages: first, pages } = effect;
    const [target, epoch] = [this.prefill.list(slot, 1), this.prefill.list(slot, 2)];
    const [attempt, incarnation] = [this.prefill.slot('attempt', slot), this.prefill.header('incarnation')];
    for (let place = first; place < first + pages; place++) {
      this.writes.push({ slot, attempt, place, page: target[place], epoch: epoch[place], incarnation });
    }
  }

  /** Decode leases, prefill takes pages, and computes so many places. */
  transfer(slot: number, places: number): void {
    this.local('decode', 'admit', slot);
    this.deliver();
    this.local('prefill', 'admit', slot);
    for (let done = 1; done <= places; done++) this.local('prefill', 'chunk', slot, { pages: 1, tokens: done });
  }

  /** The slot's writes land; a write whose registration is gone fails. Prefill hears of it either way. */
  land(slot: number, isWhole = true): void {
    for (let i = 0; i < this.writes.length; ) {
      const write = this.writes[i];
      if (write.slot !== slot) i++;
      else {
        this.writes.splice(i, 1);
        if (this.registered.has(write.incarnation)) this.tags.set(write.page, { ...write, isWhole });
        if (write.incarnation === this.prefill.header('incarnation')) {
          this.send('prefill', { kind: 'settled', slot, attempt: write.attempt, pages: 1 });
        }
      }
    }
  }

  #verdict(slot: number): number {
    let verdict: number = Verdict.own;
    const pages = this.decode.list(slot, 0).slice(0, this.decode.slot('promptPages', slot));
    for (const [place, page] of pages.entries()) {
      const tag = this.tags.get(page);
      const attempt = this.decode.slot('attempt', slot);
      const isOwn = tag?.slot === slot && tag.attempt === attempt && tag.place === place;
      // What prefill completed is not in the page, so the checksum that came with `complete` does not agree either.
      if (!isOwn || tag.epoch !== this.decode.page(page, 'epoch')) verdict |= Verdict.badTag | Verdict.badChecksum;
      else if (!tag.isWhole) verdict |= Verdict.badChecksum;
    }
    return verdict;
  }

  /** Decode verifies what prefill completed, and the gateway hears of it. */
  verify(slot: number): void {
    this.deliver();
    this.local('decode', 'verified', slot, { code: this.#verdict(slot) });
    this.deliver();
  }

  /** One step of decode: look, read, look again; its token leaves if the gateway lets it. */
  read(slot: number): void {
    const isWhole = this.#verdict(slot) === Verdict.own;
    // A checksum is compared once, by `verified`; the looks while decoding compare tags.
    const code = this.#verdict(slot) & Verdict.badTag;
    this.local('decode', 'readBegin', slot, { code });
    this.local('decode', 'readEnd', slot, { code });
    const attempt = this.gateway.slot('attempt', slot);
    const leaves = this.decode.phase(slot) === 'decoding' && isStreaming(this.gateway.state, slot, attempt);
    if (leaves && !isWhole) this.hasLeaked = true;
    this.deliver();
  }

  clientLeaves(slot: number): void {
    this.send('gateway', { kind: 'clientGone', slot });
    this.deliver();
  }

  /** Prefill dies and lives again; everybody learns of it, decode last. */
  restartPrefill(): void {
    const incarnation = this.prefill.header('incarnation') + 1;
    const { faults, guards, prefillPages } = this.#options;
    this.prefill = new Scripted('prefill', { faults, guards, pages: prefillPages });
    const { shape, rules } = this.prefill.state;
    const state = newView(shape, rules);
    state.cells[state.at] = incarnation;
    this.prefill.state = state;
    this.send('gateway', { kind: 'prefillDown', from: incarnation });
    this.deliver();
    this.send('decode', { kind: 'prefillDown', from: incarnation });
    this.deliver();
  }
}
