/**
 * The handoff protocol with its surroundings, for the checker: the very `step` functions that the engine runs, a control wire that
 * loses, repeats and reorders, one-sided page writes that land late and in any order, clients that leave, nodes that restart.
 * Memory is modelled by its tags: which (slot, attempt, place, epoch) was last written to each page of decode's pool. Two equal
 * messages on the wire are one. A timer rings when the wire is quiet: it is longer than the network's delay.
 */
import { assert } from '../../base/assert.js';
import { DecodePhase, leaseList, stepDecode, Verdict } from '../../handoff/decode.js';
import { FAULTS } from '../../handoff/faults.js';
import { GatewayPhase, stepGateway } from '../../handoff/gateway.js';
import {
  DH,
  DS,
  GH,
  GS,
  listAt,
  PageState,
  PG,
  PH,
  PS,
  pageAt,
  resetView,
  slotAt,
  type View,
} from '../../handoff/layout.js';
import { E, EFFECT_WIDTH, EffectKind, EVENT_FIXED_WIDTH, EventKind, newOut, type Out } from '../../handoff/messages.js';
import { EPOCH, PrefillPhase, stepPrefill, TARGET } from '../../handoff/prefill.js';
import { ACTION_INDEX_MAX, type ActionKind, type Model } from '../model.js';
import { A, actionKinds } from './handoff-actions.js';
import { HandoffProperties } from './handoff-properties.js';
import {
  contentOf,
  DECODE,
  ENV,
  GATEWAY,
  ownerAttempt,
  ownerSlot,
  packFirst,
  packPair,
  packSecond,
  PAGES_PER_SLOT,
  PREFILL,
  SEALED,
  sealedContent,
  sealedTenant,
  SPOILT,
  SURROUNDINGS,
  TORN,
  unpack,
  WorldRecord,
  writeDecode,
  writeOf,
  writePage,
  writePrefill,
  writtenContent,
} from './handoff-record.js';
import type { HandoffScope } from './handoff-scope.js';
import { HandoffSymmetry } from './handoff-symmetry.js';
import { letterOf, tell } from './handoff-words.js';

const TORN_WRITE = 1 << FAULTS.indexOf('torn-write');

export class HandoffModel implements Model {
  readonly scope: HandoffScope;
  readonly record: WorldRecord;
  readonly width: number;
  readonly cells: Uint8Array;
  readonly parts: readonly number[];
  readonly kinds: readonly ActionKind[];
  readonly symmetry?: HandoffSymmetry;
  readonly properties: HandoffProperties;
  readonly #words: Int32Array;
  readonly #g: View;
  readonly #p: View;
  readonly #d: View;
  readonly #env: number;
  readonly #event = new Int32Array(EVENT_FIXED_WIDTH + 2 * PAGES_PER_SLOT);
  readonly #out: Out;
  readonly #pairs = new Int32Array(2 * PAGES_PER_SLOT);
  readonly #tears: boolean;
  /** Hash of each request's first page. */
  readonly #hashes: Int32Array;
  /** Whether the page that a step seals holds what its hash says; looked at before the step. */
  #sealsOwn = false;
  #touched = 0;
  #into: Int32Array = new Int32Array(0);
  #count = 0;

  constructor(scope: HandoffScope, options: { readonly symmetry?: boolean } = {}) {
    this.scope = scope;
    this.record = new WorldRecord(scope);
    const { cells, words, gateway, prefill, decode, env } = this.record;
    this.width = cells.length;
    this.cells = cells;
    this.#words = words;
    this.#g = gateway;
    this.#p = prefill;
    this.#d = decode;
    this.#env = env;
    this.#out = newOut(scope.slots, PAGES_PER_SLOT);
    this.#hashes = Int32Array.from(scope.requests, ({ hash }) => hash);
    this.#tears = scope.tears > 0 && (scope.rules.faults & TORN_WRITE) !== 0;
    this.parts = this.record.parts;
    this.kinds = actionKinds(scope);
    if (options.symmetry === true) this.symmetry = new HandoffSymmetry(scope, this.record);
    this.properties = new HandoffProperties(scope, this.record);
  }

  init(): void {
    const { cells, scope } = this;
    cells.fill(0);
    resetView(this.#g, 1, 1);
    resetView(this.#p, 1, 1);
    resetView(this.#d, 1, 1);
    const env = this.#env;
    cells[env + ENV.aborts] = scope.aborts;
    cells[env + ENV.losses] = scope.losses;
    cells[env + ENV.repeats] = scope.repeats;
    cells[env + ENV.prefillCrashes] = scope.prefillCrashes;
    cells[env + ENV.decodeCrashes] = scope.decodeCrashes;
    cells[env + ENV.abandons] = scope.abandons;
    cells[env + ENV.handles] = scope.handles;
    cells[env + ENV.tears] = scope.tears;
    cells[env + ENV.registered] = 1 << 1;
  }

  wordsUsed(): number {
    return this.record.messages + 2 * this.cells[this.#env + ENV.messages];
  }

  boundary(): boolean {
    return true;
  }

  actions(into: Int32Array): number {
    const { cells } = this;
    const env = this.#env;
    this.#into = into;
    this.#count = 0;
    const messages = cells[env + ENV.messages];
    const writes = cells[env + ENV.writes];
    for (let m = 0; m < messages; m++) {
      this.#add(A.deliver, m);
      if (cells[env + ENV.repeats] > 0) this.#add(A.repeat, m);
      if (cells[env + ENV.losses] > 0) this.#add(A.lose, m);
    }
    for (let w = 0; w < writes; w++) {
      this.#add(A.land, w);
      if (this.#tears && cells[env + ENV.tears] > 0) this.#add(A.tear, w);
    }
    this.#submissions();
    for (let slot = 0; slot < this.scope.slots; slot++) this.#slotActions(slot, messages + writes === 0);
    if (this.scope.prefixes) this.#evictions();
    this.#restarts();
    return this.#count;
  }

  #add(kind: number, index: number): void {
    this.#into[this.#count++] = kind * ACTION_INDEX_MAX + index;
  }

  #submissions(): void {
    const submitted = this.cells[this.#env + ENV.submitted];
    if (submitted === (1 << this.scope.requests.length) - 1 || this.#freeSlot() < 0) return;
    for (let request = 0; request < this.scope.requests.length; request++) {
      if (((submitted >> request) & 1) === 0) this.#add(A.submit, request);
    }
  }

  #freeSlot(): number {
    for (let slot = 0; slot < this.scope.slots; slot++) {
      if (this.cells[slotAt(this.#g, slot) + GS.phase] === GatewayPhase.idle) return slot;
    }
    return -1;
  }

  #slotActions(slot: number, isQuiet: boolean): void {
    const { cells } = this;
    const gateway = slotAt(this.#g, slot);
    const phase = cells[gateway + GS.phase];
    const isOpen = phase === GatewayPhase.open || phase === GatewayPhase.streaming;
    if (cells[this.#env + ENV.aborts] > 0 && (isOpen || cells[gateway + GS.again] === 1)) this.#add(A.clientGone, slot);
    this.#prefillActions(slot);
    this.#decodeActions(slot);
    if (!isQuiet) return;
    if (phase !== GatewayPhase.idle) this.#add(A.gatewayTimer, slot);
    if (cells[slotAt(this.#p, slot) + PS.phase] === PrefillPhase.completing) this.#add(A.prefillTimer, slot);
    const decode = cells[slotAt(this.#d, slot) + DS.phase];
    if (decode === DecodePhase.leased || decode === DecodePhase.draining) this.#add(A.decodeTimer, slot);
  }

  #prefillActions(slot: number): void {
    const { cells } = this;
    const at = slotAt(this.#p, slot);
    const phase = cells[at + PS.phase];
    if (phase === PrefillPhase.waiting && cells[at + PS.peer] !== 0) {
      this.#add(A.prefillAdmit, slot);
      if (this.scope.prefixes && cells[at + PS.prefix] === 0) this.#hits(this.#p, A.prefillHit, slot);
    }
    if (phase === PrefillPhase.computing) this.#add(A.compute, slot);
    if (phase === PrefillPhase.computing || phase === PrefillPhase.waiting) {
      if (cells[this.#env + ENV.abandons] > 0) this.#add(A.abandon, slot);
    }
  }

  #decodeActions(slot: number): void {
    const { cells } = this;
    const at = slotAt(this.#d, slot);
    switch (cells[at + DS.phase]) {
      case DecodePhase.waiting:
        this.#add(A.decodeAdmit, slot);
        if (this.scope.prefixes && cells[at + DS.prefix] === 0) this.#hits(this.#d, A.decodeHit, slot);
        if (cells[this.#env + ENV.handles] > 0) {
          for (let page = 0; page < this.scope.decodePages; page++) this.#add(A.attach, slot * 8 + page);
        }
        return;
      case DecodePhase.verifying:
        return this.#add(A.verify, slot);
      case DecodePhase.decoding:
        this.#add(A.readBegin, slot);
        this.#add(A.finish, slot);
        return;
      case DecodePhase.reading:
        return this.#add(A.readEnd, slot);
      case DecodePhase.draining:
        // A drain may be called late at any time.
        return this.#add(A.timeout, slot);
    }
  }

  /** The index proposes any sealed page; what may be taken is the machine's to say. */
  #hits(view: View, kind: number, slot: number): void {
    for (let page = 0; page < view.shape.pages; page++) {
      if (this.cells[pageAt(view, page) + PG.state] === PageState.sealed) this.#add(kind, slot * 8 + page);
    }
  }

  #evictions(): void {
    for (const [view, kind] of [
      [this.#p, A.prefillEvict],
      [this.#d, A.decodeEvict],
    ] as const) {
      for (let page = 0; page < view.shape.pages; page++) {
        const at = pageAt(view, page);
        if (this.cells[at + PG.state] === PageState.sealed && this.cells[at + PG.refs] === 0) this.#add(kind, page);
      }
    }
  }

  #restarts(): void {
    const { cells } = this;
    if (cells[this.#env + ENV.prefillCrashes] > 0) this.#add(A.prefillRestart, 0);
    if (cells[this.#env + ENV.decodeCrashes] > 0) this.#add(A.decodeRestart, 0);
    const prefill = cells[this.#p.at + PH.incarnation];
    const decode = cells[this.#d.at + DH.incarnation];
    if (cells[this.#g.at + GH.prefillIncarnation] < prefill) this.#add(A.gatewayLearnsPrefill, 0);
    if (cells[this.#g.at + GH.decodeIncarnation] < decode) this.#add(A.gatewayLearnsDecode, 0);
    if (cells[this.#d.at + DH.prefillIncarnation] < prefill) this.#add(A.decodeLearnsPrefill, 0);
    if (cells[this.#p.at + PH.decodeIncarnation] < decode) this.#add(A.prefillLearnsDecode, 0);
  }

  next(action: number): number {
    this.#touched = 1 << SURROUNDINGS;
    this.#take(action);
    return this.#touched;
  }

  #take(action: number): void {
    const index = action % ACTION_INDEX_MAX;
    const slot = index;
    switch ((action / ACTION_INDEX_MAX) | 0) {
      case A.deliver:
      case A.repeat:
      case A.lose:
        return this.#message((action / ACTION_INDEX_MAX) | 0, index);
      case A.land:
        return this.#land(index, 0);
      case A.tear:
        this.#spend(ENV.tears);
        return this.#land(index, TORN);
      case A.submit:
        return this.#submit(index);
      case A.clientGone:
        this.#spend(ENV.aborts);
        return this.#local(GATEWAY, EventKind.clientGone, slot);
      case A.prefillAdmit:
        return this.#local(PREFILL, EventKind.admit, slot);
      case A.prefillHit:
        return this.#hit(PREFILL, index);
      case A.compute:
        return this.#compute(slot);
      case A.abandon:
        this.#spend(ENV.abandons);
        return this.#local(PREFILL, EventKind.abandon, slot);
      case A.prefillEvict:
        return this.#evict(PREFILL, index);
      case A.decodeAdmit:
        return this.#local(DECODE, EventKind.admit, slot);
      case A.decodeHit:
        return this.#hit(DECODE, index);
      case A.attach:
        return this.#attach(index >> 3, index & 7);
      case A.verify:
        return this.#local(DECODE, EventKind.verified, slot, this.verdict(slot));
      case A.readBegin:
        return this.#read(slot, EventKind.readBegin);
      case A.readEnd:
        return this.#read(slot, EventKind.readEnd);
      case A.finish:
        return this.#finish(slot);
      case A.decodeEvict:
        return this.#evict(DECODE, index);
      case A.gatewayTimer:
        return this.#local(GATEWAY, EventKind.timer, slot);
      case A.prefillTimer:
        return this.#local(PREFILL, EventKind.timer, slot);
      case A.decodeTimer:
        return this.#local(DECODE, EventKind.timer, slot);
      case A.timeout:
        return this.#local(DECODE, EventKind.timeout, slot);
      case A.prefillRestart:
        return this.#restartPrefill();
      case A.decodeRestart:
        return this.#restartDecode();
      default:
        return this.#learn((action / ACTION_INDEX_MAX) | 0);
    }
  }

  #spend(budget: number): void {
    this.cells[this.#env + budget]--;
  }

  #restartPrefill(): void {
    this.#spend(ENV.prefillCrashes);
    resetView(this.#p, this.cells[this.#p.at + PH.incarnation] + 1, this.cells[this.#d.at + DH.incarnation]);
    this.#touched |= 1 << PREFILL;
  }

  /** A new pool: nothing of the old one can be written to, since its registrations went with it. */
  #restartDecode(): void {
    const { cells } = this;
    this.#spend(ENV.decodeCrashes);
    const prefill = cells[this.#p.at + PH.incarnation];
    resetView(this.#d, cells[this.#d.at + DH.incarnation] + 1, prefill);
    this.#words.fill(0, this.record.content, this.record.writes);
    cells[this.#env + ENV.registered] = 1 << prefill;
    cells[this.#env + ENV.tainted] = 0;
    this.#touched |= 1 << DECODE;
  }

  #learn(kind: number): void {
    const isPrefill = kind === A.gatewayLearnsPrefill || kind === A.decodeLearnsPrefill;
    const view = isPrefill ? this.#p : this.#d;
    this.#clearEvent(isPrefill ? EventKind.prefillDown : EventKind.decodeDown, 0);
    this.#event[E.from] = this.cells[view.at + PH.incarnation];
    const isGateway = kind === A.gatewayLearnsPrefill || kind === A.gatewayLearnsDecode;
    this.#step(isGateway ? GATEWAY : isPrefill ? DECODE : PREFILL);
  }

  #clearEvent(kind: number, slot: number): void {
    const event = this.#event;
    for (let i = 2; i < event.length; i++) event[i] = 0;
    event[E.kind] = kind;
    event[E.slot] = slot;
  }

  #submit(index: number): void {
    const { cells } = this;
    const slot = this.#freeSlot();
    const request = this.scope.requests[index];
    cells[this.#env + ENV.submitted] |= 1 << index;
    cells[this.#env + ENV.requestOf + slot] = index;
    this.#clearEvent(EventKind.submit, slot);
    const event = this.#event;
    event[E.from] = this.scope.retries;
    event[E.room] = index + 1;
    event[E.tokens] = request.pages;
    event[E.promptPages] = request.pages;
    event[E.pages] = request.pages;
    event[E.tenant] = request.tenant;
    event[E.salt] = request.tenant;
    event[E.code] = this.scope.limit;
    this.#step(GATEWAY);
  }

  #local(actor: number, kind: number, slot: number, verdict = 0): void {
    this.#clearEvent(kind, slot);
    this.#event[E.code] = verdict;
    if (actor === PREFILL) this.#event[E.attempt] = this.cells[slotAt(this.#p, slot) + PS.attempt];
    else if (actor === DECODE) this.#event[E.attempt] = this.cells[slotAt(this.#d, slot) + DS.attempt];
    this.#step(actor);
  }

  #compute(slot: number): void {
    const at = slotAt(this.#p, slot);
    this.#clearEvent(EventKind.chunk, slot);
    this.#event[E.attempt] = this.cells[at + PS.attempt];
    this.#event[E.pages] = 1;
    this.#event[E.tokens] = this.cells[at + PS.posted] + 1;
    this.#step(PREFILL);
  }

  hashOf(slot: number): number {
    return this.#hashes[this.cells[this.#env + ENV.requestOf + slot]];
  }

  #hit(actor: number, index: number): void {
    const slot = index >> 3;
    this.#clearEvent(EventKind.hit, slot);
    const attempt = actor === PREFILL ? slotAt(this.#p, slot) + PS.attempt : slotAt(this.#d, slot) + DS.attempt;
    this.#event[E.attempt] = this.cells[attempt];
    this.#event[E.count] = 1;
    this.#event[E.list] = index & 7;
    this.#event[E.list + 1] = this.hashOf(slot);
    this.#step(actor);
  }

  #evict(actor: number, page: number): void {
    this.#clearEvent(EventKind.evict, 0);
    this.#event[E.pages] = page;
    this.#step(actor);
  }

  #attach(slot: number, page: number): void {
    this.#spend(ENV.handles);
    this.#clearEvent(EventKind.attach, slot);
    this.#event[E.attempt] = this.cells[slotAt(this.#d, slot) + DS.attempt];
    this.#event[E.count] = 1;
    this.#event[E.list] = page;
    this.#event[E.list + 1] = this.cells[pageAt(this.#d, page) + PG.epoch];
    this.#step(DECODE);
  }

  #finish(slot: number): void {
    this.#clearEvent(EventKind.finish, slot);
    const at = slotAt(this.#d, slot);
    this.#event[E.attempt] = this.cells[at + DS.attempt];
    if (this.scope.prefixes && this.cells[at + DS.attached] === 0) {
      this.#event[E.count] = 1;
      this.#event[E.list] = 0;
      this.#event[E.list + 1] = this.hashOf(slot);
      this.#sealsOwn = this.holdsOwn(slot, 0);
    }
    this.#step(DECODE);
  }

  /** Whether the page in a place of the slot's prompt is what the request wrote there, or may share. */
  holdsOwn(slot: number, place: number): boolean {
    const { cells } = this;
    const at = slotAt(this.#d, slot);
    const page = cells[listAt(this.#d, slot, 0) + place];
    const content = this.#words[this.record.content + page];
    if (place < cells[at + DS.prefix]) return content === sealedContent(cells[at + DS.tenant], this.hashOf(slot));
    return content === contentOf(slot, cells[at + DS.attempt], place, cells[pageAt(this.#d, page) + PG.epoch]);
  }

  /** Whether all of the slot's prompt is its own. The truth; no guard knows it. */
  isOwn(slot: number): boolean {
    const places = this.cells[slotAt(this.#d, slot) + DS.promptPages];
    for (let place = 0; place < places; place++) if (!this.holdsOwn(slot, place)) return false;
    return true;
  }

  /** What tags and checksums say of the slot's prompt. A sealed page's tag names its tenant, and not what it hashes to. */
  verdict(slot: number): number {
    const { cells } = this;
    const at = slotAt(this.#d, slot);
    const prefix = cells[at + DS.prefix];
    let verdict = 0;
    for (let place = 0; place < cells[at + DS.promptPages]; place++) {
      const page = cells[listAt(this.#d, slot, 0) + place];
      const content = this.#words[this.record.content + page];
      if (place < prefix) {
        const isTenants = (content & SEALED) !== 0 && sealedTenant(content) === cells[at + DS.tenant];
        if (!isTenants) verdict |= Verdict.badTag;
        continue;
      }
      const own = contentOf(slot, cells[at + DS.attempt], place, cells[pageAt(this.#d, page) + PG.epoch]);
      if ((content & ~TORN) !== own) verdict |= Verdict.badTag;
      else if ((content & TORN) !== 0) verdict |= Verdict.badChecksum;
    }
    return verdict;
  }

  #read(slot: number, kind: number): void {
    const env = this.#env;
    const { cells } = this;
    if (!this.isOwn(slot)) cells[env + ENV.tainted] |= 1 << slot;
    // A checksum is compared once, by `verified`; the looks while decoding compare tags.
    this.#local(DECODE, kind, slot, this.verdict(slot) & Verdict.badTag);
    const phase = cells[slotAt(this.#d, slot) + DS.phase];
    if (kind === EventKind.readBegin && phase === DecodePhase.reading) return;
    // The token leaves, if it does: what it was computed over has to have been the request's own, all the while.
    if (phase === DecodePhase.decoding && ((cells[env + ENV.tainted] >> slot) & 1) === 1) cells[env + ENV.leaked] = 1;
    cells[env + ENV.tainted] &= ~(1 << slot);
  }

  #message(kind: number, index: number): void {
    const words = this.#words;
    const at = this.record.messages + 2 * index;
    this.#clearEvent(0, 0);
    const target = unpack(words[at], words[at + 1], this.#event);
    if (kind === A.repeat) this.#spend(ENV.repeats);
    else {
      const end = this.record.messages + 2 * --this.cells[this.#env + ENV.messages];
      for (let i = at; i < end; i++) words[i] = words[i + 2];
    }
    if (kind === A.lose) this.#spend(ENV.losses);
    else this.#step(target);
  }

  /** A posted write reaches decode's pool, if its registration still stands. The sender's completion comes with it. */
  #land(index: number, torn: number): void {
    const { cells, record } = this;
    const words = this.#words;
    const write = words[record.writes + index];
    const count = --cells[this.#env + ENV.writes];
    for (let i = index; i < count; i++) words[record.writes + i] = words[record.writes + i + 1];
    words[record.writes + count] = 0;
    const prefill = writePrefill(write);
    const isRegistered = ((cells[this.#env + ENV.registered] >> prefill) & 1) === 1;
    if (isRegistered && writeDecode(write) === cells[this.#d.at + DH.incarnation]) {
      words[record.content + writePage(write)] = writtenContent(write) | torn;
      this.#taintReaders();
    }
    if (prefill !== cells[this.#p.at + PH.incarnation]) return;
    const slot = ownerSlot(write);
    this.#clearEvent(EventKind.settled, slot);
    this.#event[E.attempt] = ownerAttempt(write);
    this.#event[E.pages] = 1;
    if (this.scope.prefixes) {
      this.#event[E.count] = 1;
      this.#event[E.list] = 0;
      this.#event[E.list + 1] = this.hashOf(slot);
    }
    this.#step(PREFILL);
  }

  #taintReaders(): void {
    for (let slot = 0; slot < this.scope.slots; slot++) {
      if (this.cells[slotAt(this.#d, slot) + DS.phase] !== DecodePhase.reading || this.isOwn(slot)) continue;
      this.cells[this.#env + ENV.tainted] |= 1 << slot;
    }
  }

  #step(actor: number): void {
    const out = this.#out;
    out.length = 0;
    this.#touched |= 1 << actor;
    if (actor === GATEWAY) stepGateway(this.#g, this.#event, out);
    else if (actor === PREFILL) stepPrefill(this.#p, this.#event, out);
    else stepDecode(this.#d, this.#event, out);
    for (let i = 0; i < out.length; i++) this.#carryOut(out.cells, i * EFFECT_WIDTH, actor);
  }

  #carryOut(effects: Int32Array, at: number, actor: number): void {
    switch (effects[at]) {
      case EffectKind.sendGateway:
        return this.#send(GATEWAY, effects, at + 1);
      case EffectKind.sendPrefill:
        return this.#send(PREFILL, effects, at + 1);
      case EffectKind.sendDecode:
        return this.#send(DECODE, effects, at + 1);
      case EffectKind.post:
        return this.#post(effects, at + 1);
      case EffectKind.revoke:
        this.cells[this.#env + ENV.registered] &= ~(1 << effects[at + 1 + E.from]);
        return;
      case EffectKind.register:
        this.cells[this.#env + ENV.registered] |= 1 << effects[at + 1 + E.from];
        return;
      case EffectKind.seal:
        if (actor === DECODE) this.#seal(effects[at + 1 + E.pages]);
    }
  }

  #seal(page: number): void {
    const at = pageAt(this.#d, page);
    const content = sealedContent(this.cells[at + PG.tenant], this.cells[at + PG.hash]);
    this.#words[this.record.content + page] = this.#sealsOwn ? content : content | SPOILT;
  }

  /** Messages are kept in rising order, so that the same set is the same cells; one that is there already is not added. */
  #send(target: number, effects: Int32Array, at: number): void {
    const words = this.#words;
    const base = this.record.messages;
    const first = packFirst(effects, at, target);
    let second = packSecond(effects, at);
    if (effects[at + E.kind] === EventKind.lease) {
      leaseList(this.#d, effects[at + E.slot], this.#pairs, 0);
      for (let i = 0; i < effects[at + E.count]; i++) second |= packPair(i, this.#pairs[2 * i], this.#pairs[2 * i + 1]);
    }
    const count = this.cells[this.#env + ENV.messages];
    let place = base + 2 * count;
    while (place > base && (words[place - 2] > first || (words[place - 2] === first && words[place - 1] > second))) {
      place -= 2;
    }
    if (place > base && words[place - 2] === first && words[place - 1] === second) return;
    // A full wire loses the message, as it may.
    if (count >= this.scope.messagesMax) return;
    for (let i = base + 2 * count - 1; i >= place; i--) words[i + 2] = words[i];
    words[place] = first;
    words[place + 1] = second;
    this.cells[this.#env + ENV.messages] = count + 1;
  }

  #post(effects: Int32Array, at: number): void {
    const { cells } = this;
    const slot = effects[at + E.slot];
    const slotCell = slotAt(this.#p, slot);
    for (let i = 0; i < effects[at + E.pages]; i++) {
      const place = effects[at + E.promptPages] + i;
      const epoch = cells[listAt(this.#p, slot, EPOCH) + place];
      const content = contentOf(slot, cells[slotCell + PS.attempt], place, epoch);
      const page = cells[listAt(this.#p, slot, TARGET) + place];
      this.#addWrite(writeOf(content, page, cells[this.#p.at + PH.incarnation], cells[slotCell + PS.peer]));
    }
  }

  #addWrite(write: number): void {
    const words = this.#words;
    const base = this.record.writes;
    const count = this.cells[this.#env + ENV.writes];
    let place = base + count;
    while (place > base && words[place - 1] > write) place--;
    if (place > base && words[place - 1] === write) return;
    assert(count < this.record.writesMax, 'more writes are on the wire than the pools allow');
    for (let i = base + count - 1; i >= place; i--) words[i + 1] = words[i];
    words[place] = write;
    this.cells[this.#env + ENV.writes] = count + 1;
  }

  inWords(action: number): string {
    const name = (slot: number): string => letterOf(this.cells[this.#env + ENV.requestOf + slot]);
    return tell(this.record, action, name).words;
  }
}
