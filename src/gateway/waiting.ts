import { assert } from '../base/assert.js';
import { BoundedQueue } from '../base/bounded-queue.js';
import type { Clock, Timer } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import type { TenantAccount } from './account.js';
import {
  OVERTAKES_MAX,
  RETRY_AFTER_S,
  TENANT_OPEN_BOUND,
  TENANT_OPEN_MAX,
  WAIT_MS_MAX,
  WAITING_MAX,
} from './bounds.js';
import { type Place, Round } from './round.js';
export { openAccount, type TenantAccount } from './account.js';

/** What the upstream holds; read again at every decision. */
export interface RoomSize {
  /** Requests at once. */
  readonly runningMax: number;
  /** Tokens of the decode pool; null: not known, and then only permits bound. */
  readonly poolTokens: number | null;
  readonly pageTokens: number;
  /** The largest request that is admitted, in tokens of the decode pool. */
  readonly requestTokensMax: number;
}

export interface WaitingOptions {
  readonly clock: Clock;
  readonly size: () => RoomSize;
  readonly tenants: number;
  /** @default TENANT_OPEN_MAX */
  readonly tenantOpenMax?: number;
  /** @default WAITING_MAX */
  readonly waitingMax?: number;
  /** @default WAIT_MS_MAX */
  readonly waitMsMax?: number;
  /** How far a turn moves a tenant on: a tenant with half the stride has twice the turns. @default 1 for all */
  readonly strideOf?: (account: TenantAccount) => number;
}

/** Where a ticket is. It moves forward only. */
type TicketPhase = 'waiting' | 'leased' | 'draining' | 'over';

export interface Ticket {
  readonly phase: TicketPhase;
  /** Leaves the queue without a turn; nothing after the turn has come. */
  cancel(): void;
  /** It needs fewer tokens than it asked for; more are not given. */
  shrink(tokens: number): void;
  /** The request's `end`: the permit goes back, its tokens drain. */
  ended(): void;
  /** The request's `released`: its tokens go back. */
  released(): void;
}

export interface Turn {
  /** The permit and the tokens are taken: dispatch now. */
  granted(ticket: Ticket): void;
  /** It waited too long, or the gateway closes. */
  refused(error: CodedError): void;
  /** The engine takes no requests any more and this one has not left: it may be asked for elsewhere. Absent: it is refused. */
  displaced?(): void;
}

interface Entry {
  readonly account: TenantAccount;
  readonly queue: TenantQueue;
  /** Whole pages. */
  tokens: number;
  readonly turn: Turn;
  phase: TicketPhase;
  overtaken: number;
  timer: Timer | null;
}

/** What one tenant has in this room alone. */
interface TenantQueue extends Place {
  readonly account: TenantAccount;
  readonly waiting: BoundedQueue<Entry>;
  running: number;
  /** Leased and draining. */
  heldTokens: number;
}

/**
 * Who is dispatched next to one engine. A request is dispatched when a permit is free and its tokens fit what is left of the decode pool by
 * our own accounting, so that the engine never has to queue.
 *
 * Waiting is first in, first out inside a tenant, and goes round between tenants, by their strides. A request that waits for room may be passed by `OVERTAKES_MAX` later ones of other tenants, and then by nobody, so that it is served
 * as soon as what runs has ended. While there are other tenants, one of them never holds the last permit, nor the room of the
 * largest request that is admitted: a tenant that reads slowly takes nobody's turn but its own.
 */
export class WaitingRoom {
  readonly #clock: Clock;
  readonly #size: () => RoomSize;
  #tenants: number;
  #tenantOpenMax: number;
  #waitingMax: number;
  #waitMsMax: number;
  /** Tenants with waiting requests. */
  readonly #round: Round<TenantQueue>;
  readonly #queues = new Map<TenantAccount, TenantQueue>();
  #waiting = 0;
  #running = 0;
  #heldTokens = 0;
  #waitingTokens = 0;
  #pumping = false;
  #pumpAgain = false;

  constructor(options: WaitingOptions) {
    this.#clock = options.clock;
    this.#size = options.size;
    this.#tenants = options.tenants;
    this.#tenantOpenMax = options.tenantOpenMax ?? TENANT_OPEN_MAX;
    this.#waitingMax = options.waitingMax ?? WAITING_MAX;
    this.#waitMsMax = options.waitMsMax ?? WAIT_MS_MAX;
    this.#round = new Round(({ account }) => options.strideOf?.(account) ?? 1);
  }

  /** Other bounds from the next request on; who waits keeps what it entered with. */
  setBounds(bounds: Required<Pick<WaitingOptions, 'tenants' | 'tenantOpenMax' | 'waitingMax' | 'waitMsMax'>>): void {
    this.#tenants = bounds.tenants;
    this.#tenantOpenMax = bounds.tenantOpenMax;
    this.#waitingMax = bounds.waitingMax;
    this.#waitMsMax = bounds.waitMsMax;
    // More tenants or fewer: who waited at a ceiling may have its turn.
    this.#pump();
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Tokens leased and draining, of all tenants. */
  get heldTokens(): number {
    return this.#heldTokens;
  }

  /** Tokens held, and those that what waits here has asked for. */
  get loadTokens(): number {
    return this.#heldTokens + this.#waitingTokens;
  }

  /** Whether a request with so many tokens would have to wait for its turn. */
  wouldWait(account: TenantAccount, tokens: number): boolean {
    const size = this.#size();
    const queue = this.#queueOf(account);
    const whole = this.#wholePages(tokens);
    if (this.#running >= size.runningMax || queue.waiting.size > 0) return true;
    if (!this.#fits(whole, size) || !this.#withinCeiling(queue, whole, size)) return true;
    return this.#round.some((each) => this.#withinCeiling(each, each.waiting.peek()!.tokens, size));
  }

  /**
   * Asks for a turn with `tokens` of the decode pool (0: by permits alone). `granted` may be called before this returns.
   * `waitedMs`: how long it has waited elsewhere. Throws `rate_limit_exceeded` at the tenant's own bound, which is looked at first,
   * and `no_capacity` at the shared one.
   */
  enter(account: TenantAccount, tokens: number, turn: Turn, waitedMs: number = 0): Ticket {
    this.#checkBounds(account);
    const entry = this.#newEntry(account, tokens, turn);
    if (entry.queue.waiting.size === 0) this.#round.join(entry.queue);
    const pushed = entry.queue.waiting.push(entry);
    assert(pushed, 'a tenant waits with more requests than it may have open');
    this.#waiting++;
    this.#waitingTokens += entry.tokens;
    account.waiting++;
    account.waitingTokens += entry.tokens;
    this.#pump();
    if (entry.phase === 'waiting') this.#boundWait(entry, waitedMs);
    return new TicketHandle(this, entry);
  }

  #checkBounds(account: TenantAccount): void {
    if (account.running + account.waiting >= this.#tenantOpenMax) {
      throw new CodedError(
        'rate_limit_exceeded',
        `Expected at most ${this.#tenantOpenMax} open requests of one tenant; wait until some of yours have ended.`,
        { retryAfterS: RETRY_AFTER_S },
      );
    }
    if (this.#waiting >= this.#waitingMax) throw noCapacity();
  }

  #queueOf(account: TenantAccount): TenantQueue {
    let queue = this.#queues.get(account);
    if (queue === undefined) {
      queue = { account, waiting: new BoundedQueue<Entry>(TENANT_OPEN_BOUND), running: 0, heldTokens: 0, pass: 0 };
      this.#queues.set(account, queue);
    }
    return queue;
  }

  #newEntry(account: TenantAccount, tokens: number, turn: Turn): Entry {
    const queue = this.#queueOf(account);
    return { account, queue, tokens: this.#wholePages(tokens), turn, phase: 'waiting', overtaken: 0, timer: null };
  }

  #wholePages(tokens: number): number {
    const { poolTokens, pageTokens } = this.#size();
    const rounded = Math.ceil(tokens / pageTokens) * pageTokens;
    // What was admitted to a pool of broken pages still gets its turn, alone.
    return poolTokens === null ? rounded : Math.min(rounded, Math.floor(poolTokens / pageTokens) * pageTokens);
  }

  #boundWait(entry: Entry, waitedMs: number): void {
    entry.timer = this.#clock.after(this.#waitMsMax - waitedMs, () => {
      entry.timer = null;
      this.#leave(entry);
      entry.turn.refused(noCapacity());
      this.#pump();
    });
  }

  /** Refuses everything that waits, for closing. */
  refuseAll(error: () => CodedError): void {
    for (const entry of this.#leaveAll()) entry.turn.refused(error());
  }

  /** Sends everything that waits away, to where else it can be served; what can't be is refused. */
  evict(error: () => CodedError): void {
    for (const entry of this.#leaveAll()) {
      if (entry.turn.displaced === undefined) entry.turn.refused(error());
      else entry.turn.displaced();
    }
  }

  /** In the order in which tenants stand in the round, and each tenant's own. */
  #leaveAll(): Entry[] {
    const left: Entry[] = [];
    for (;;) {
      const entry = this.#round.first?.waiting.peek();
      if (entry === undefined) return left;
      this.#leave(entry);
      left.push(entry);
    }
  }

  /** Grants turns until nothing more fits. A turn may end at once and call back in here; that only asks for another pass. */
  #pump(): void {
    if (this.#pumping) {
      this.#pumpAgain = true;
      return;
    }
    this.#pumping = true;
    try {
      do {
        this.#pumpAgain = false;
        while (this.#grantOne());
      } while (this.#pumpAgain);
    } finally {
      this.#pumping = false;
    }
  }

  #grantOne(): boolean {
    const size = this.#size();
    if (this.#running >= size.runningMax) return false;
    const passed: Entry[] = [];
    for (const queue of this.#round) {
      const entry = queue.waiting.peek();
      assert(entry !== undefined, 'a tenant without waiting requests stands in the round');
      // At its own ceiling a tenant waits for itself; that is nobody's overtaking.
      if (!this.#withinCeiling(queue, entry.tokens, size)) continue;
      if (this.#fits(entry.tokens, size)) {
        for (const each of passed) each.overtaken++;
        this.#grant(entry);
        return true;
      }
      if (entry.overtaken >= OVERTAKES_MAX) return false;
      passed.push(entry);
    }
    return false;
  }

  #fits(tokens: number, size: RoomSize): boolean {
    return size.poolTokens === null || tokens === 0 || this.#heldTokens + tokens <= size.poolTokens;
  }

  #withinCeiling({ running, heldTokens }: TenantQueue, tokens: number, size: RoomSize): boolean {
    if (this.#tenants < 2) return true;
    if (running > 0 && running >= size.runningMax - 1) return false;
    if (size.poolTokens === null || tokens === 0 || heldTokens === 0) return true;
    return heldTokens + tokens <= Math.max(size.poolTokens - size.requestTokensMax, size.poolTokens / 2);
  }

  #grant(entry: Entry): void {
    const { account } = entry;
    this.#leave(entry);
    this.#round.served(entry.queue, entry.queue.waiting.size > 0);
    entry.phase = 'leased';
    account.running++;
    account.leasedTokens += entry.tokens;
    entry.queue.running++;
    entry.queue.heldTokens += entry.tokens;
    this.#running++;
    this.#heldTokens += entry.tokens;
    entry.turn.granted(new TicketHandle(this, entry));
  }

  /** Out of the queue, whichever way. */
  #leave(entry: Entry): void {
    assert(entry.phase === 'waiting', 'only a waiting request leaves the queue');
    entry.phase = 'over';
    entry.timer?.cancel();
    entry.timer = null;
    const removed = entry.queue.waiting.remove(entry);
    assert(removed, 'a waiting request stands in the queue of its tenant');
    if (entry.queue.waiting.size === 0) this.#round.leave(entry.queue);
    entry.account.waiting--;
    entry.account.waitingTokens -= entry.tokens;
    this.#waiting--;
    this.#waitingTokens -= entry.tokens;
    assert(this.#waiting >= 0 && entry.account.waiting >= 0, 'fewer requests wait than none');
  }

  /** For the ticket. */
  cancelEntry(entry: Entry): void {
    if (entry.phase !== 'waiting') return;
    this.#leave(entry);
    this.#pump();
  }

  /** For the ticket. */
  endEntry(entry: Entry): void {
    assert(entry.phase === 'leased', 'a request ends once, after its turn');
    entry.phase = 'draining';
    entry.account.running--;
    entry.account.leasedTokens -= entry.tokens;
    entry.account.drainingTokens += entry.tokens;
    entry.queue.running--;
    this.#running--;
    assert(this.#running >= 0 && entry.queue.running >= 0, 'fewer requests run than none');
    this.#pump();
  }

  /** For the ticket. */
  releaseEntry(entry: Entry): void {
    assert(entry.phase === 'draining', 'a request is released once, after its end');
    entry.phase = 'over';
    entry.account.drainingTokens -= entry.tokens;
    entry.queue.heldTokens -= entry.tokens;
    this.#heldTokens -= entry.tokens;
    assert(this.#heldTokens >= 0 && entry.queue.heldTokens >= 0, 'fewer tokens are held than none');
    this.#pump();
  }

  /** For the ticket. */
  shrinkEntry(entry: Entry, tokens: number): void {
    const fewer = entry.tokens - this.#wholePages(tokens);
    if (entry.phase !== 'leased' || fewer <= 0) return;
    entry.tokens -= fewer;
    entry.account.leasedTokens -= fewer;
    entry.queue.heldTokens -= fewer;
    this.#heldTokens -= fewer;
    assert(entry.account.leasedTokens >= 0 && entry.queue.heldTokens >= 0, 'fewer tokens are held than none');
    this.#pump();
  }
}

function noCapacity(): CodedError {
  return new CodedError('no_capacity', 'No capacity is free for this request now; try again later.', {
    retryAfterS: RETRY_AFTER_S,
  });
}

class TicketHandle implements Ticket {
  readonly #room: WaitingRoom;
  readonly #entry: Entry;

  constructor(room: WaitingRoom, entry: Entry) {
    this.#room = room;
    this.#entry = entry;
  }

  get phase(): TicketPhase {
    return this.#entry.phase;
  }

  cancel(): void {
    this.#room.cancelEntry(this.#entry);
  }

  shrink(tokens: number): void {
    this.#room.shrinkEntry(this.#entry, tokens);
  }

  ended(): void {
    this.#room.endEntry(this.#entry);
  }

  released(): void {
    this.#room.releaseEntry(this.#entry);
  }
}
