/** What must hold of the world in every state, what must be seen in some, and when nothing is open. */
import { DecodePhase } from '../../handoff/decode.js';
import { GatewayPhase } from '../../handoff/gateway.js';
import {
  brokenInvariant,
  DECODE_INVARIANTS,
  everyPageIsAccountedFor,
  GATEWAY_INVARIANTS,
  ownersMatchLists,
  PREFILL_INVARIANTS,
  prefixesStayInsideOneTenant,
} from '../../handoff/invariants.js';
import {
  DH,
  DS,
  FREE_COUNT,
  GS,
  listAt,
  PageState,
  PG,
  PH,
  PS,
  pageAt,
  slotAt,
  type View,
} from '../../handoff/layout.js';
import { Result } from '../../handoff/messages.js';
import { PrefillPhase, SOURCE } from '../../handoff/prefill.js';
import type { Broken, Model, Sometimes } from '../model.js';
import {
  DECODE,
  ENV,
  GATEWAY,
  ownerAttempt,
  ownerEpoch,
  ownerPlace,
  ownerSlot,
  PREFILL,
  type WorldRecord,
  writeDecode,
  writePage,
  writePrefill,
} from './handoff-record.js';
import type { HandoffScope } from './handoff-scope.js';

const broken = (invariant: string, words: string): Broken => ({ invariant, words });

const LEAKED = 'a token left that was computed over a page that was not its own';
const HARM = [everyPageIsAccountedFor, ownersMatchLists, prefixesStayInsideOneTenant];

/** One `always` in one state. */
export interface PropertyStatus {
  readonly invariant: string;
  /** The machine whose record it is asked of; null: the whole world. */
  readonly actor: string | null;
  /** Null, or how it is broken. */
  readonly words: string | null;
  /** False: the scope counts only harm, and this is none. */
  readonly counts: boolean;
}

export class HandoffProperties {
  readonly sometimes: Model['properties']['sometimes'];
  readonly #scope: HandoffScope;
  readonly #record: WorldRecord;
  readonly #cells: Uint8Array;
  readonly #g: View;
  readonly #p: View;
  readonly #d: View;
  readonly #env: number;

  constructor(scope: HandoffScope, record: WorldRecord) {
    this.#scope = scope;
    this.#record = record;
    this.#cells = record.cells;
    this.#g = record.gateway;
    this.#p = record.prefill;
    this.#d = record.decode;
    this.#env = record.env;
    this.sometimes = this.#witnesses();
  }

  always(touched: number): Broken | null {
    if (this.#cells[this.#env + ENV.leaked] === 1) {
      return broken('noForeignRead', LEAKED);
    }
    if (this.#scope.harmOnly === true)
      return this.#harm(this.#p, touched, PREFILL) ?? this.#harm(this.#d, touched, DECODE);
    if ((touched & (1 << GATEWAY)) !== 0) {
      const found = brokenInvariant(this.#g);
      if (found !== null) return found;
    }
    if ((touched & (1 << PREFILL)) !== 0) {
      const found = brokenInvariant(this.#p);
      if (found !== null) return found;
    }
    if ((touched & (1 << DECODE)) !== 0) {
      const found = brokenInvariant(this.#d);
      if (found !== null) return found;
    }
    // A write is posted by prefill, its page is decode's; a landing only takes one away.
    const isWire = (touched & ((1 << PREFILL) | (1 << DECODE))) !== 0;
    const isAnswer = (touched & ((1 << GATEWAY) | (1 << DECODE))) !== 0;
    return (isWire ? this.#strayWrite() : null) ?? (isAnswer ? this.#refusedLives() : null);
  }

  /** Every `always` by itself, in a fixed order. For people: the explorer asks `always`, which stops at the first. */
  statuses(): PropertyStatus[] {
    const all = this.#scope.harmOnly !== true;
    const leaked = this.#cells[this.#env + ENV.leaked] === 1 ? LEAKED : null;
    const world = (invariant: string, words: string | null, counts = all): PropertyStatus => ({
      invariant,
      actor: null,
      words,
      counts,
    });
    const list: PropertyStatus[] = [
      world('noForeignRead', leaked, true),
      world('noReuseBeforeQuiescence', this.#strayWrite()?.words ?? null),
      world('refusedIsDeadEverywhere', this.#refusedLives()?.words ?? null),
    ];
    for (const [view, checks] of [
      [this.#g, GATEWAY_INVARIANTS],
      [this.#p, PREFILL_INVARIANTS],
      [this.#d, DECODE_INVARIANTS],
    ] as const) {
      for (const check of checks) {
        const { actor } = view.shape;
        list.push({ invariant: check.name, actor, words: check(view), counts: all || HARM.includes(check) });
      }
    }
    return list;
  }

  /** A page that is lost, or lent to a tenant that it is not for. */
  #harm(view: View, touched: number, part: number): Broken | null {
    if ((touched & (1 << part)) === 0) return null;
    for (const check of HARM) {
      const words = check(view);
      if (words !== null) return broken(check.name, `${view.shape.actor}: ${words}`);
    }
    return null;
  }

  /**
   * No reuse before quiescence, at both ends: a write that can still land has a page that its own attempt still holds in decode, and
   * reads a page that its own attempt still holds in prefill.
   */
  #strayWrite(): Broken | null {
    const cells = this.#cells;
    const { words, writes } = this.#record;
    const count = cells[this.#env + ENV.writes];
    for (let w = 0; w < count; w++) {
      const write = words[writes + w];
      if (((cells[this.#env + ENV.registered] >> writePrefill(write)) & 1) === 0) continue;
      if (writeDecode(write) !== cells[this.#d.at + DH.incarnation]) continue;
      const slot = ownerSlot(write);
      const page = pageAt(this.#d, writePage(write));
      const state = cells[page + PG.state];
      const isHeld = state === PageState.leased || state === PageState.draining;
      if (!isHeld || cells[page + PG.owner] !== slot + 1 || cells[page + PG.epoch] !== ownerEpoch(write)) {
        return broken('noReuseBeforeQuiescence', this.#strayWords(write));
      }
      if (writePrefill(write) === cells[this.#p.at + PH.incarnation] && !this.#hasSource(write)) {
        return broken('noReuseBeforeQuiescence', `a write of slot ${slot} reads a page that prefill took back`);
      }
    }
    return null;
  }

  #strayWords(write: number): string {
    return `a write of slot ${ownerSlot(write)} can still land in page ${writePage(write)} of decode, which it does not hold any more`;
  }

  #hasSource(write: number): boolean {
    const cells = this.#cells;
    const slot = ownerSlot(write);
    const at = slotAt(this.#p, slot);
    if (cells[at + PS.phase] === PrefillPhase.idle || cells[at + PS.attempt] !== ownerAttempt(write)) return false;
    const place = ownerPlace(write);
    if (place >= cells[at + PS.held]) return false;
    const page = pageAt(this.#p, cells[listAt(this.#p, slot, SOURCE) + place]);
    return place < cells[at + PS.prefix] || cells[page + PG.owner] === slot + 1;
  }

  /** A refused request is dead everywhere: nothing of it is decoded. */
  #refusedLives(): Broken | null {
    for (let slot = 0; slot < this.#scope.slots; slot++) {
      const gateway = slotAt(this.#g, slot);
      if (this.#cells[gateway + GS.result] !== Result.refused) continue;
      const decode = slotAt(this.#d, slot);
      const phase = this.#cells[decode + DS.phase];
      const isCurrent = this.#cells[decode + DS.attempt] === this.#cells[gateway + GS.attempt];
      if (isCurrent && (phase === DecodePhase.decoding || phase === DecodePhase.reading)) {
        return broken('refusedIsDeadEverywhere', `slot ${slot} was refused and is decoded`);
      }
    }
    return null;
  }

  /** Every slot is idle on all sides, and every page is free or can be had by an eviction. */
  settled(): boolean {
    const cells = this.#cells;
    for (let slot = 0; slot < this.#scope.slots; slot++) {
      if (cells[slotAt(this.#g, slot) + GS.phase] !== GatewayPhase.idle) return false;
      if (cells[slotAt(this.#p, slot) + PS.phase] !== PrefillPhase.idle) return false;
      if (cells[slotAt(this.#d, slot) + DS.phase] !== DecodePhase.idle) return false;
    }
    return this.#isWhole(this.#p) && this.#isWhole(this.#d);
  }

  #isWhole(view: View): boolean {
    let back = this.#cells[view.at + FREE_COUNT];
    if (back === view.shape.pages) return true;
    for (let page = 0; page < view.shape.pages; page++) {
      const at = pageAt(view, page);
      if (this.#cells[at + PG.state] === PageState.sealed && this.#cells[at + PG.refs] === 0) back++;
    }
    return back === view.shape.pages;
  }

  #anySlot(view: View, test: (at: number) => boolean): () => boolean {
    return () => {
      for (let slot = 0; slot < this.#scope.slots; slot++) if (test(slotAt(view, slot))) return true;
      return false;
    };
  }

  #witnesses(): Sometimes[] {
    const cells = this.#cells;
    const scope = this.#scope;
    const phase = (view: View, field: number, wanted: number): (() => boolean) =>
      this.#anySlot(view, (at) => cells[at + field] === wanted);
    const list: Sometimes[] = [
      { name: 'a request streams', holds: phase(this.#g, GS.phase, GatewayPhase.streaming) },
      { name: 'an answer is whole', holds: phase(this.#g, GS.result, Result.finished) },
    ];
    const add = (isPossible: boolean, name: string, holds: () => boolean): void => {
      if (isPossible) list.push({ name, holds });
    };
    const leaves = scope.aborts > 0;
    add(leaves, 'decode drains', phase(this.#d, DS.phase, DecodePhase.draining));
    add(leaves, 'prefill waits for its writes to settle', phase(this.#p, PS.phase, PrefillPhase.stopping));
    const sizes = scope.requests
      .map(({ pages }) => pages)
      .filter((pages) => pages <= scope.limit && pages <= scope.decodePages)
      .sort((a, b) => a - b);
    const sum = (pages: readonly number[]): number => pages.reduce((total, count) => total + count, 0);
    const fitTwo = scope.slots > 1 && sizes.length > 1 && sum(sizes.slice(0, 2)) <= scope.decodePages;
    const isTight = scope.slots > 1 && sum(sizes.slice(-scope.slots)) > scope.decodePages;
    const wants = (at: number): boolean =>
      cells[at + DS.phase] === DecodePhase.waiting && cells[this.#d.at + FREE_COUNT] < cells[at + DS.pages];
    add(isTight, 'a request waits for a full pool', this.#anySlot(this.#d, wants));
    add(
      scope.retries > 0,
      'a second attempt streams',
      this.#anySlot(this.#g, (at) => this.#isSecond(at)),
    );
    add(
      scope.requests.some(({ pages }) => pages > Math.min(scope.limit, scope.prefillPages)),
      'a request is refused',
      phase(this.#g, GS.result, Result.refused),
    );
    add(fitTwo, 'two requests are in transfer at once', () => this.#inTransfer() > 1);
    add(scope.prefillCrashes > 0, 'a write of a dead prefill is still on the wire', () => this.#hasDeadWrite());
    add(
      scope.prefixes,
      'a request reads a shared prefix',
      this.#anySlot(this.#d, (at) => this.#readsPrefix(at)),
    );
    return list;
  }

  #isSecond(gateway: number): boolean {
    const isRetried = this.#cells[gateway + GS.retries] < this.#scope.retries;
    return isRetried && this.#cells[gateway + GS.phase] === GatewayPhase.streaming;
  }

  #readsPrefix(decode: number): boolean {
    return this.#cells[decode + DS.prefix] > 0 && this.#cells[decode + DS.phase] === DecodePhase.reading;
  }

  #inTransfer(): number {
    let count = 0;
    for (let slot = 0; slot < this.#scope.slots; slot++) {
      const phase = this.#cells[slotAt(this.#d, slot) + DS.phase];
      if (phase === DecodePhase.leased || phase === DecodePhase.draining) count++;
    }
    return count;
  }

  #hasDeadWrite(): boolean {
    const { words, writes } = this.#record;
    for (let w = 0; w < this.#cells[this.#env + ENV.writes]; w++) {
      if (writePrefill(words[writes + w]) !== this.#cells[this.#p.at + PH.incarnation]) return true;
    }
    return false;
  }
}
