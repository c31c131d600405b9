/**
 * The handoff protocol with its surroundings, for the checker: the very `step` functions that the engine runs, a control wire that
 * loses, repeats and reorders, one-sided page writes that land late and in any order, clients that leave, nodes that restart.
 * Memory is modelled by its tags: which (slot, attempt, place, epoch) was last written to each page of decode's pool.
 */
import { DecodePhase, leaseList, stepDecode, Verdict } from '../../handoff/decode.js';
import { GatewayPhase, stepGateway } from '../../handoff/gateway.js';
import { firstBroken } from '../../handoff/invariants.js';
import {
  DH,
  DS,
  GH,
  GS,
  listAt,
  newView,
  PageState,
  PG,
  PH,
  PS,
  pageAt,
  resetView,
  type Rules,
  shapeOf,
  slotAt,
  type View,
} from '../../handoff/layout.js';
import {
  E,
  EFFECT_WIDTH,
  EffectKind,
  EventKind,
  EVENT_FIXED_WIDTH,
  eventInWords,
  newOut,
  type Out,
  Result,
} from '../../handoff/messages.js';
import { EPOCH, PrefillPhase, stepPrefill, TARGET } from '../../handoff/prefill.js';
import type { Model } from '../model.js';

export interface HandoffScope {
  readonly slots: number;
  readonly prefillPages: number;
  readonly decodePages: number;
  /** Pages of each slot's prompt; one token a page. */
  readonly promptPages: readonly number[];
  readonly tenants: readonly number[];
  readonly retries: number;
  readonly aborts: number;
  readonly losses: number;
  readonly repeats: number;
  readonly prefillCrashes: number;
  readonly decodeCrashes: number;
  readonly abandons: number;
  readonly messagesMax: number;
  /** The largest prompt that the gateway admits, in tokens. */
  readonly limit: number;
  readonly rules: Rules;
}

const GATEWAY = 1;
const PREFILL = 2;
const DECODE = 3;
const CONTENT_WIDTH = 4;
const WRITE_WIDTH = 7;

const ENV = {
  aborts: 0,
  losses: 1,
  repeats: 2,
  prefillCrashes: 3,
  decodeCrashes: 4,
  abandons: 5,
  /** Bit i: incarnation i of prefill may write. */
  registered: 6,
  leaked: 7,
  submitted: 8,
  tainted: 9,
} as const;
const ENV_WIDTH = 10;

const ACTIONS = [
  'submit',
  'clientGone',
  'deliver',
  'repeat',
  'lose',
  'prefill admits',
  'prefill computes',
  'prefill abandons',
  'land',
  'decode leases',
  'decode verifies',
  'read begins',
  'read ends',
  'finish',
  'gateway asks again',
  'prefill asks again',
  'decode asks again',
  'drain timeout',
  'prefill restarts',
  'decode restarts',
  'gateway learns of prefill',
  'gateway learns of decode',
  'decode learns of prefill',
  'prefill learns of decode',
] as const;
type ActionName = (typeof ACTIONS)[number];
const INDEX_MAX = 32;
const code = (name: ActionName, index = 0): number => ACTIONS.indexOf(name) * INDEX_MAX + index;
const A = Object.fromEntries(ACTIONS.map((name, index) => [name, index])) as Record<ActionName, number>;

export class HandoffModel implements Model {
  readonly width: number;
  readonly sometimes: Model['sometimes'];
  readonly #scope: HandoffScope;
  readonly #g: View;
  readonly #p: View;
  readonly #d: View;
  readonly #event: Int32Array;
  readonly #out: Out;
  readonly #contentBase: number;
  readonly #writeBase: number;
  readonly #writesMax: number;
  readonly #messageBase: number;
  readonly #messageWidth: number;
  readonly #envBase: number;
  #cells: Uint8Array = new Uint8Array(0);
  #at = 0;

  constructor(scope: HandoffScope) {
    this.#scope = scope;
    const pagesPerSlot = Math.max(...scope.promptPages);
    const empty = new Uint8Array(4096);
    this.#g = newView(shapeOf('gateway', { slots: scope.slots }), scope.rules, empty);
    this.#p = newView(
      shapeOf('prefill', { slots: scope.slots, pages: scope.prefillPages, pagesPerSlot }),
      scope.rules,
      empty,
    );
    this.#d = newView(
      shapeOf('decode', { slots: scope.slots, pages: scope.decodePages, pagesPerSlot }),
      scope.rules,
      empty,
    );
    this.#event = new Int32Array(EVENT_FIXED_WIDTH + 2 * pagesPerSlot);
    this.#out = newOut(scope.slots);
    this.#contentBase = this.#g.shape.width + this.#p.shape.width + this.#d.shape.width;
    this.#writeBase = this.#contentBase + scope.decodePages * CONTENT_WIDTH;
    this.#writesMax = scope.promptPages.reduce((sum, pages) => sum + pages, 0) + pagesPerSlot;
    this.#messageBase = this.#writeBase + this.#writesMax * WRITE_WIDTH;
    this.#messageWidth = 1 + EVENT_FIXED_WIDTH + 2 * pagesPerSlot;
    this.#envBase = this.#messageBase + scope.messagesMax * this.#messageWidth;
    this.width = this.#envBase + ENV_WIDTH;
    this.sometimes = this.#witnesses();
  }

  #witnesses(): Model['sometimes'] {
    const slotPhase =
      (view: View, phaseField: number, phase: number) =>
      (cells: Uint8Array, at: number): boolean => {
        this.#bind(cells, at);
        for (let slot = 0; slot < this.#scope.slots; slot++) {
          if (cells[slotAt(view, slot) + phaseField] === phase) return true;
        }
        return false;
      };
    return [
      { name: 'a request streams', holds: slotPhase(this.#g, GS.phase, GatewayPhase.streaming) },
      { name: 'decode drains', holds: slotPhase(this.#d, DS.phase, DecodePhase.draining) },
      { name: 'prefill waits for its writes to settle', holds: slotPhase(this.#p, PS.phase, PrefillPhase.stopping) },
    ];
  }

  init(cells: Uint8Array, at: number): void {
    cells.fill(0, at, at + this.width);
    this.#bind(cells, at);
    resetView(this.#g, 1, 1);
    resetView(this.#p, 1, 1);
    resetView(this.#d, 1, 1);
    const env = at + this.#envBase;
    cells[env + ENV.aborts] = this.#scope.aborts;
    cells[env + ENV.losses] = this.#scope.losses;
    cells[env + ENV.repeats] = this.#scope.repeats;
    cells[env + ENV.prefillCrashes] = this.#scope.prefillCrashes;
    cells[env + ENV.decodeCrashes] = this.#scope.decodeCrashes;
    cells[env + ENV.abandons] = this.#scope.abandons;
    cells[env + ENV.registered] = 1 << 1;
  }

  #bind(cells: Uint8Array, at: number): void {
    this.#cells = cells;
    this.#at = at;
    const views = [this.#g, this.#p, this.#d] as { cells: Uint8Array; at: number; shape: View['shape'] }[];
    let base = at;
    for (const view of views) {
      view.cells = cells;
      view.at = base;
      base += view.shape.width;
    }
  }

  #env(field: number): number {
    return this.#cells[this.#at + this.#envBase + field];
  }

  #setEnv(field: number, value: number): void {
    this.#cells[this.#at + this.#envBase + field] = value;
  }

  actions(cells: Uint8Array, at: number, into: Int32Array): number {
    this.#bind(cells, at);
    let count = 0;
    const add = (name: ActionName, index = 0): void => {
      into[count++] = code(name, index);
    };
    let isQuiet = true;
    for (let m = 0; m < this.#scope.messagesMax; m++) {
      if (cells[at + this.#messageBase + m * this.#messageWidth] === 0) break;
      isQuiet = false;
      add('deliver', m);
      if (this.#env(ENV.repeats) > 0) add('repeat', m);
      if (this.#env(ENV.losses) > 0) add('lose', m);
    }
    for (let w = 0; w < this.#writesMax; w++) {
      if (cells[at + this.#writeBase + w * WRITE_WIDTH] === 0) break;
      isQuiet = false;
      add('land', w);
    }
    for (let slot = 0; slot < this.#scope.slots; slot++) this.#slotActions(slot, isQuiet, add);
    if (this.#env(ENV.prefillCrashes) > 0) add('prefill restarts');
    if (this.#env(ENV.decodeCrashes) > 0) add('decode restarts');
    const prefill = cells[this.#p.at + PH.incarnation];
    const decode = cells[this.#d.at + DH.incarnation];
    if (cells[this.#g.at + GH.prefillIncarnation] < prefill) add('gateway learns of prefill');
    if (cells[this.#g.at + GH.decodeIncarnation] < decode) add('gateway learns of decode');
    if (cells[this.#d.at + DH.prefillIncarnation] < prefill) add('decode learns of prefill');
    if (cells[this.#p.at + PH.decodeIncarnation] < decode) add('prefill learns of decode');
    return count;
  }

  #slotActions(slot: number, isQuiet: boolean, add: (name: ActionName, index?: number) => void): void {
    const cells = this.#cells;
    const gateway = cells[slotAt(this.#g, slot) + GS.phase];
    const prefill = slotAt(this.#p, slot);
    const decode = cells[slotAt(this.#d, slot) + DS.phase];
    if (((this.#env(ENV.submitted) >> slot) & 1) === 0) add('submit', slot);
    if (this.#env(ENV.aborts) > 0 && (gateway === GatewayPhase.open || gateway === GatewayPhase.streaming)) {
      add('clientGone', slot);
    }
    if (cells[prefill + PS.phase] === PrefillPhase.waiting && cells[prefill + PS.peer] !== 0)
      add('prefill admits', slot);
    if (cells[prefill + PS.phase] === PrefillPhase.computing) {
      add('prefill computes', slot);
      if (this.#env(ENV.abandons) > 0) add('prefill abandons', slot);
    }
    if (decode === DecodePhase.waiting) add('decode leases', slot);
    if (decode === DecodePhase.verifying) add('decode verifies', slot);
    if (decode === DecodePhase.decoding) {
      add('read begins', slot);
      add('finish', slot);
    }
    if (decode === DecodePhase.reading) add('read ends', slot);
    // A drain may be called late at any time; asking again comes when the wire is quiet, as a timer longer than the network does.
    if (decode === DecodePhase.draining) add('drain timeout', slot);
    if (!isQuiet) return;
    if (gateway !== GatewayPhase.idle) add('gateway asks again', slot);
    if (cells[prefill + PS.phase] === PrefillPhase.completing) add('prefill asks again', slot);
    if (decode === DecodePhase.leased || decode === DecodePhase.draining) add('decode asks again', slot);
  }

  next(cells: Uint8Array, at: number, action: number, next: Uint8Array, nextAt: number): boolean {
    next.set(cells.subarray(at, at + this.width), nextAt);
    this.#bind(next, nextAt);
    this.#apply(Math.floor(action / INDEX_MAX), action % INDEX_MAX);
    for (let i = 0; i < this.width; i++) if (next[nextAt + i] !== cells[at + i]) return true;
    return false;
  }

  #apply(action: number, index: number): void {
    switch (action) {
      case A.submit:
        return this.#submit(index);
      case A.clientGone:
        this.#setEnv(ENV.aborts, this.#env(ENV.aborts) - 1);
        return this.#local(GATEWAY, EventKind.clientGone, index);
      case A.deliver:
      case A.repeat:
      case A.lose:
        return this.#message(action, index);
      case A['prefill admits']:
        return this.#local(PREFILL, EventKind.admit, index);
      case A['prefill computes']:
        return this.#compute(index);
      case A['prefill abandons']:
        this.#setEnv(ENV.abandons, this.#env(ENV.abandons) - 1);
        return this.#local(PREFILL, EventKind.abandon, index);
      case A.land:
        return this.#land(index);
      case A['decode leases']:
        return this.#local(DECODE, EventKind.admit, index);
      case A['decode verifies']:
        return this.#local(DECODE, EventKind.verified, index, this.#isOwn(index) ? Verdict.own : Verdict.badTag);
      case A['read begins']:
        return this.#read(index, EventKind.readBegin);
      case A['read ends']:
        return this.#read(index, EventKind.readEnd);
      case A.finish:
        return this.#local(DECODE, EventKind.finish, index);
      case A['gateway asks again']:
        return this.#local(GATEWAY, EventKind.timer, index);
      case A['prefill asks again']:
        return this.#local(PREFILL, EventKind.timer, index);
      case A['decode asks again']:
        return this.#local(DECODE, EventKind.timer, index);
      case A['drain timeout']:
        return this.#local(DECODE, EventKind.timeout, index);
      case A['prefill restarts']:
        this.#setEnv(ENV.prefillCrashes, this.#env(ENV.prefillCrashes) - 1);
        return resetView(
          this.#p,
          this.#cells[this.#p.at + PH.incarnation] + 1,
          this.#cells[this.#d.at + DH.incarnation],
        );
      case A['decode restarts']:
        return this.#restartDecode();
      default:
        return this.#learn(action);
    }
  }

  /** A new pool: nothing of the old one can be written to, since its registrations went with it. */
  #restartDecode(): void {
    const cells = this.#cells;
    this.#setEnv(ENV.decodeCrashes, this.#env(ENV.decodeCrashes) - 1);
    const prefill = cells[this.#p.at + PH.incarnation];
    resetView(this.#d, cells[this.#d.at + DH.incarnation] + 1, prefill);
    cells.fill(0, this.#at + this.#contentBase, this.#at + this.#writeBase);
    this.#setEnv(ENV.registered, 1 << prefill);
    this.#setEnv(ENV.tainted, 0);
  }

  #learn(action: number): void {
    const prefill = this.#cells[this.#p.at + PH.incarnation];
    const decode = this.#cells[this.#d.at + DH.incarnation];
    this.#event.fill(0);
    const isPrefill = action === A['gateway learns of prefill'] || action === A['decode learns of prefill'];
    this.#event[E.kind] = isPrefill ? EventKind.prefillDown : EventKind.decodeDown;
    this.#event[E.from] = isPrefill ? prefill : decode;
    const isGateway = action === A['gateway learns of prefill'] || action === A['gateway learns of decode'];
    this.#step(isGateway ? GATEWAY : isPrefill ? DECODE : PREFILL);
  }

  #submit(slot: number): void {
    this.#setEnv(ENV.submitted, this.#env(ENV.submitted) | (1 << slot));
    this.#event.fill(0);
    this.#event[E.kind] = EventKind.submit;
    this.#event[E.slot] = slot;
    this.#event[E.from] = this.#scope.retries;
    this.#event[E.room] = slot + 1;
    this.#event[E.tokens] = this.#scope.promptPages[slot];
    this.#event[E.promptPages] = this.#scope.promptPages[slot];
    this.#event[E.pages] = this.#scope.promptPages[slot];
    this.#event[E.tenant] = this.#scope.tenants[slot];
    this.#event[E.code] = this.#scope.limit;
    this.#step(GATEWAY);
  }

  #local(actor: number, kind: number, slot: number, verdict = 0): void {
    this.#event.fill(0);
    this.#event[E.kind] = kind;
    this.#event[E.slot] = slot;
    this.#event[E.code] = verdict;
    const attempt = actor === PREFILL ? slotAt(this.#p, slot) + PS.attempt : slotAt(this.#d, slot) + DS.attempt;
    if (actor !== GATEWAY) this.#event[E.attempt] = this.#cells[attempt];
    this.#step(actor);
  }

  #compute(slot: number): void {
    this.#event.fill(0);
    this.#event[E.kind] = EventKind.chunk;
    this.#event[E.slot] = slot;
    const at = slotAt(this.#p, slot);
    this.#event[E.attempt] = this.#cells[at + PS.attempt];
    this.#event[E.pages] = 1;
    this.#event[E.tokens] = this.#cells[at + PS.posted] + 1;
    this.#step(PREFILL);
  }

  #isOwn(slot: number): boolean {
    const cells = this.#cells;
    const at = slotAt(this.#d, slot);
    const list = listAt(this.#d, slot, 0);
    for (let place = 0; place < cells[at + DS.promptPages]; place++) {
      const page = cells[list + place];
      const content = this.#at + this.#contentBase + page * CONTENT_WIDTH;
      if (cells[content] !== slot + 1 || cells[content + 1] !== cells[at + DS.attempt]) return false;
      if (cells[content + 2] !== place || cells[content + 3] !== cells[pageAt(this.#d, page) + PG.epoch]) return false;
    }
    return true;
  }

  #read(slot: number, kind: number): void {
    const isOwn = this.#isOwn(slot);
    if (!isOwn) this.#setEnv(ENV.tainted, this.#env(ENV.tainted) | (1 << slot));
    this.#local(DECODE, kind, slot, isOwn ? Verdict.own : Verdict.badTag);
    const phase = this.#cells[slotAt(this.#d, slot) + DS.phase];
    if (kind === EventKind.readBegin && phase === DecodePhase.reading) return;
    // The token leaves, if it does: what it was computed over has to have been the request's own, all the while.
    if (phase === DecodePhase.decoding && ((this.#env(ENV.tainted) >> slot) & 1) === 1) this.#setEnv(ENV.leaked, 1);
    this.#setEnv(ENV.tainted, this.#env(ENV.tainted) & ~(1 << slot));
  }

  #message(action: number, index: number): void {
    const at = this.#at + this.#messageBase + index * this.#messageWidth;
    const target = this.#cells[at];
    this.#event.set(this.#cells.subarray(at + 1, at + this.#messageWidth));
    if (action === A.repeat) this.#setEnv(ENV.repeats, this.#env(ENV.repeats) - 1);
    else removeEntry(this.#cells, this.#at + this.#messageBase, index, this.#scope.messagesMax, this.#messageWidth);
    if (action === A.lose) this.#setEnv(ENV.losses, this.#env(ENV.losses) - 1);
    else this.#step(target);
  }

  /** A posted write reaches decode's pool, if its registration still stands. The sender's completion comes with it. */
  #land(index: number): void {
    const cells = this.#cells;
    const base = this.#at + this.#writeBase;
    const [owner, attempt, place, page, epoch, prefill, decode] = cells.subarray(
      base + index * WRITE_WIDTH,
      base + (index + 1) * WRITE_WIDTH,
    );
    removeEntry(cells, base, index, this.#writesMax, WRITE_WIDTH);
    const isRegistered = ((this.#env(ENV.registered) >> prefill) & 1) === 1;
    if (isRegistered && decode === cells[this.#d.at + DH.incarnation]) {
      const content = this.#at + this.#contentBase + page * CONTENT_WIDTH;
      cells[content] = owner;
      cells[content + 1] = attempt;
      cells[content + 2] = place;
      cells[content + 3] = epoch;
      this.#taintReaders();
    }
    if (prefill !== cells[this.#p.at + PH.incarnation]) return;
    this.#event.fill(0);
    this.#event[E.kind] = EventKind.settled;
    this.#event[E.slot] = owner - 1;
    this.#event[E.attempt] = attempt;
    this.#event[E.pages] = 1;
    this.#step(PREFILL);
  }

  #taintReaders(): void {
    for (let slot = 0; slot < this.#scope.slots; slot++) {
      if (this.#cells[slotAt(this.#d, slot) + DS.phase] !== DecodePhase.reading || this.#isOwn(slot)) continue;
      this.#setEnv(ENV.tainted, this.#env(ENV.tainted) | (1 << slot));
    }
  }

  #step(actor: number): void {
    this.#out.length = 0;
    if (actor === GATEWAY) stepGateway(this.#g, this.#event, this.#out);
    else if (actor === PREFILL) stepPrefill(this.#p, this.#event, this.#out);
    else stepDecode(this.#d, this.#event, this.#out);
    for (let i = 0; i < this.#out.length; i++) this.#carryOut(this.#out.cells, i * EFFECT_WIDTH);
  }

  #carryOut(effects: Int32Array, at: number): void {
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
        return this.#setEnv(ENV.registered, this.#env(ENV.registered) & ~(1 << effects[at + 1 + E.from]));
      case EffectKind.register:
        return this.#setEnv(ENV.registered, this.#env(ENV.registered) | (1 << effects[at + 1 + E.from]));
    }
  }

  #send(target: number, effects: Int32Array, at: number): void {
    const width = this.#messageWidth;
    const message = new Uint8Array(width);
    message[0] = target;
    for (let i = 0; i < EVENT_FIXED_WIDTH; i++) message[1 + i] = effects[at + i];
    if (effects[at + E.kind] === EventKind.lease) {
      const list = new Int32Array(width - 1 - EVENT_FIXED_WIDTH);
      leaseList(this.#d, effects[at + E.slot], list, 0);
      message.set(list, 1 + EVENT_FIXED_WIDTH);
    }
    insertEntry(this.#cells, this.#at + this.#messageBase, message, this.#scope.messagesMax, width);
  }

  #post(effects: Int32Array, at: number): void {
    const cells = this.#cells;
    const slot = effects[at + E.slot];
    const slotCell = slotAt(this.#p, slot);
    for (let i = 0; i < effects[at + E.pages]; i++) {
      const place = effects[at + E.promptPages] + i;
      const write = new Uint8Array(WRITE_WIDTH);
      write[0] = slot + 1;
      write[1] = cells[slotCell + PS.attempt];
      write[2] = place;
      write[3] = cells[listAt(this.#p, slot, TARGET) + place];
      write[4] = cells[listAt(this.#p, slot, EPOCH) + place];
      write[5] = cells[this.#p.at + PH.incarnation];
      write[6] = cells[slotCell + PS.peer];
      insertEntry(cells, this.#at + this.#writeBase, write, this.#writesMax, WRITE_WIDTH);
    }
  }

  broken(cells: Uint8Array, at: number): string | null {
    this.#bind(cells, at);
    if (this.#env(ENV.leaked) === 1) return 'a token left that was computed over a page that was not its own';
    return (
      firstBroken(this.#g) ?? firstBroken(this.#p) ?? firstBroken(this.#d) ?? this.#strayWrite() ?? this.#refusedLives()
    );
  }

  /** No reuse before quiescence: a write that can still land has a page that its own attempt still holds. */
  #strayWrite(): string | null {
    const cells = this.#cells;
    for (let w = 0; w < this.#writesMax; w++) {
      const at = this.#at + this.#writeBase + w * WRITE_WIDTH;
      if (cells[at] === 0) return null;
      if (((this.#env(ENV.registered) >> cells[at + 5]) & 1) === 0) continue;
      if (cells[at + 6] !== cells[this.#d.at + DH.incarnation]) continue;
      const page = pageAt(this.#d, cells[at + 3]);
      const isHeld = cells[page + PG.state] === PageState.leased || cells[page + PG.state] === PageState.draining;
      if (!isHeld || cells[page + PG.owner] !== cells[at] || cells[page + PG.epoch] !== cells[at + 4]) {
        return `a write of slot ${cells[at] - 1} can still land in page ${cells[at + 3]}, which it does not hold`;
      }
    }
    return null;
  }

  /** A refused request is dead everywhere: nothing of it is decoded. */
  #refusedLives(): string | null {
    for (let slot = 0; slot < this.#scope.slots; slot++) {
      const gateway = slotAt(this.#g, slot);
      const decode = slotAt(this.#d, slot);
      if (this.#cells[gateway + GS.result] !== Result.refused) continue;
      const phase = this.#cells[decode + DS.phase];
      const isCurrent = this.#cells[decode + DS.attempt] === this.#cells[gateway + GS.attempt];
      if (isCurrent && (phase === DecodePhase.decoding || phase === DecodePhase.reading)) {
        return `slot ${slot} was refused and is decoded`;
      }
    }
    return null;
  }

  settled(cells: Uint8Array, at: number): boolean {
    this.#bind(cells, at);
    for (let slot = 0; slot < this.#scope.slots; slot++) {
      if (cells[slotAt(this.#g, slot) + GS.phase] !== GatewayPhase.idle) return false;
      if (cells[slotAt(this.#p, slot) + PS.phase] !== PrefillPhase.idle) return false;
      if (cells[slotAt(this.#d, slot) + DS.phase] !== DecodePhase.idle) return false;
    }
    return true;
  }

  inWords(action: number, cells: Uint8Array, at: number): string {
    this.#bind(cells, at);
    const name = ACTIONS[Math.floor(action / INDEX_MAX)];
    const index = action % INDEX_MAX;
    if (name === 'deliver' || name === 'repeat' || name === 'lose') {
      const message = at + this.#messageBase + index * this.#messageWidth;
      const target = ['', 'gateway', 'prefill', 'decode'][cells[message]];
      const words = eventInWords(Int32Array.from(cells.subarray(message + 1, message + this.#messageWidth)));
      return `${name} to ${target}: ${words}`;
    }
    if (name === 'land') {
      const write = at + this.#writeBase + index * WRITE_WIDTH;
      return `land: slot ${cells[write] - 1} attempt ${cells[write + 1]} place ${cells[write + 2]} in page ${cells[write + 3]}`;
    }
    return `${name} ${index}`;
  }
}

/** Entries are kept in falling order, so that the same set is the same cells; an entry that is there already is not added. */
function insertEntry(cells: Uint8Array, base: number, entry: Uint8Array, entriesMax: number, width: number): void {
  let at = 0;
  for (; at < entriesMax; at++) {
    const order = compareEntries(cells, base + at * width, entry, width);
    if (order === 0) return;
    if (order < 0) break;
  }
  // A full wire loses the message, as it may.
  if (at >= entriesMax) return;
  cells.copyWithin(base + (at + 1) * width, base + at * width, base + (entriesMax - 1) * width);
  cells.set(entry, base + at * width);
}

function compareEntries(cells: Uint8Array, at: number, entry: Uint8Array, width: number): number {
  for (let i = 0; i < width; i++) {
    const difference = cells[at + i] - entry[i];
    if (difference !== 0) return difference;
  }
  return 0;
}

function removeEntry(cells: Uint8Array, base: number, index: number, entriesMax: number, width: number): void {
  cells.copyWithin(base + index * width, base + (index + 1) * width, base + entriesMax * width);
  cells.fill(0, base + (entriesMax - 1) * width, base + entriesMax * width);
}
