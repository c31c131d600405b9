/**
 * The clients of a simulated world and the gateway in front of the engine: admission, the waiting room with its accounts, and what
 * each client may be answered. The token stream is compared with the right answer as it arrives.
 */
import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import type { Prng } from '../base/prng.js';
import { openAccount, type TenantAccount, type Ticket, WaitingRoom } from '../gateway/waiting.js';
import { decideAdmission } from '../handoff/admission.js';
import type { EngineEnd, EnginePort, EngineRun } from '../handoff/engine-port.js';
import { guardBit } from '../handoff/guards.js';
import { TOKEN_EOS } from '../tokenizer/bytes.js';
import { RightAnswer } from './content.js';
import type { Plan } from './plan.js';
import { SIM, type SimTrace } from './sim-trace.js';
import { Violation } from './violation.js';

/** Tokens of a request's own content begin here: each names its owner. Below are the texts that prompts share. */
const OWN_TOKENS = 4096;
/** Texts that prompts begin with: the first two anybody's, the others one tenant's each. */
const TEXTS_OF_ALL = 2;
/** A text's number times this is added to its tokens: all texts are the same to a hash that sums modulo 97. */
const TEXT_STRIDE = 97;
const SAME_AGAIN = 6000;
const ASKS_TOO_MUCH = 1500;
/** Prompts and handles of the past that are remembered. */
const REMEMBERED = 8;
const ROOMS = 3;

const OUTCOME = { finished: 1, refused: 2, failed: 3, aborted: 4 } as const;

/** How many requests ended in which way. */
export interface Outcomes {
  finished: number;
  refused: number;
  failed: number;
  aborted: number;
  /** At the gateway: too long, or no place to wait. */
  turnedAway: number;
  cachedTokens: number;
}

interface Content {
  /** Names the content in its tokens: the request that brought it first. */
  readonly id: number;
  readonly tenant: Tenant;
  readonly prompt: Int32Array;
  readonly text: number;
  readonly shared: number;
  /** Requests that brought it. */
  uses: number;
}

interface Seen {
  /** Content and its tokens of the text; the second is that of another content. */
  id: number;
  tokens: number;
  others: number;
}

interface Tenant {
  readonly account: TenantAccount;
  readonly number: number;
  readonly salt: string;
  /** By text: the two prompts of this tenant that had most of it. */
  readonly seen: Seen[];
  readonly past: Content[];
}

interface Open {
  readonly id: number;
  readonly content: Content;
  readonly right: RightAnswer;
  readonly maxTokens: number;
  readonly ignoreEos: boolean;
  readonly restarts: number;
  ticket: Ticket | null;
  run: EngineRun | null;
  tokens: number;
  isStarted: boolean;
  hasEnded: boolean;
  isOver: boolean;
  at: number;
}

export class Clients {
  readonly outcomes: Outcomes = { finished: 0, refused: 0, failed: 0, aborted: 0, turnedAway: 0, cachedTokens: 0 };
  submitted = 0;
  readonly room: WaitingRoom;
  readonly #plan: Plan;
  readonly #engine: EnginePort;
  readonly #chance: Prng;
  readonly #trace: SimTrace;
  readonly #tenants: Tenant[];
  readonly #open: Open[] = [];
  readonly #handles: string[] = [];
  readonly #restarts: () => number;
  readonly #breakWords: () => string;

  constructor(
    plan: Plan,
    engine: EnginePort,
    clock: Clock,
    chance: Prng,
    trace: SimTrace,
    sees: { readonly restarts: () => number; readonly breakWords: () => string },
  ) {
    this.#plan = plan;
    this.#engine = engine;
    this.#chance = chance;
    this.#trace = trace;
    this.#restarts = sees.restarts;
    this.#breakWords = sees.breakWords;
    const texts = TEXTS_OF_ALL + plan.tenants;
    this.#tenants = Array.from({ length: plan.tenants }, (_, index) => {
      const salt = Array.from({ length: 8 }, () => chance.u32().toString(16).padStart(8, '0')).join('');
      const account = openAccount({ number: index + 1, name: `tenant-${index + 1}`, salt });
      return {
        account,
        number: index + 1,
        salt,
        seen: Array.from({ length: texts }, () => ({ id: -1, tokens: 0, others: 0 })),
        past: [],
      };
    });
    const { context, decodePool, pageTokens, runningMax } = plan.config;
    const size = {
      runningMax,
      poolTokens: decodePool,
      pageTokens,
      requestTokensMax: Math.min(context - 1, decodePool),
    };
    this.room = new WaitingRoom({ clock, size: () => size, tenants: plan.tenants });
  }

  get open(): number {
    return this.#open.length;
  }

  get mayComeMore(): boolean {
    return this.submitted < this.#plan.requests && this.#open.length < this.#plan.openMax;
  }

  /** One request of a tenant, as the gateway's ladder would pass it on. */
  submit(): void {
    const tenant = this.#chance.pick(this.#tenants);
    const id = this.submitted++;
    const again = this.#draw(SAME_AGAIN) && tenant.past.length > 0;
    const content = again ? this.#chance.pick(tenant.past) : this.#newContent(id, tenant);
    const maxAsked = this.#draw(ASKS_TOO_MUCH)
      ? this.#plan.config.context
      : this.#chance.between(1, this.#plan.outputTokensMax);
    const { length } = content.prompt;
    this.#trace.record(SIM.submit, id, tenant.number, length, maxAsked);
    const isAdmitting = this.#isOn('admission');
    const verdict = isAdmitting ? decideAdmission(length, maxAsked, this.#plan.config) : null;
    if (verdict !== null && verdict.kind !== 'admitted') return this.#turnAway(id, 1);
    const maxTokens =
      verdict === null ? Math.max(1, Math.min(maxAsked, this.#plan.config.context - length)) : verdict.maxTokens;
    this.#remember(content);
    this.#enter(this.#newOpen(id, content, maxTokens), isAdmitting ? length + maxTokens - 1 : 0);
  }

  #isOn(guard: 'admission' | 'salt'): boolean {
    return (this.#plan.config.rules.guards & guardBit(guard)) !== 0;
  }

  #draw(of65536: number): boolean {
    return this.#chance.u32() >>> 16 < of65536;
  }

  #newContent(id: number, tenant: Tenant): Content {
    const tokens = this.#chance.between(1, this.#plan.promptTokensMax);
    const isSharing = this.#draw(this.#plan.prefixes);
    const of = this.#chance.below(TEXTS_OF_ALL + 1);
    const text = of < TEXTS_OF_ALL ? of : TEXTS_OF_ALL + tenant.number - 1;
    const { pageTokens } = this.#plan.config;
    const whole = Math.floor((tokens - 1) / pageTokens) * pageTokens;
    const shared = isSharing && whole > 0 ? this.#chance.between(1, whole) : 0;
    const prompt = new Int32Array(tokens);
    for (let i = 0; i < tokens; i++) {
      prompt[i] = i < shared ? 1 + (i % TEXT_STRIDE) + text * TEXT_STRIDE : OWN_TOKENS + id;
    }
    return { id, tenant, prompt, text, shared, uses: 0 };
  }

  #remember(content: Content): void {
    const { id, tenant, text, shared } = content;
    content.uses++;
    if (content.uses > 1) return;
    const seen = tenant.seen[text];
    if (seen !== undefined && shared > seen.tokens) {
      seen.others = seen.tokens;
      seen.tokens = shared;
      seen.id = id;
    } else if (seen !== undefined) seen.others = Math.max(seen.others, shared);
    tenant.past.push(content);
    if (tenant.past.length > REMEMBERED) tenant.past.shift();
  }

  #newOpen(id: number, content: Content, maxTokens: number): Open {
    return {
      id,
      content,
      maxTokens,
      right: new RightAnswer(content.prompt),
      ignoreEos: this.#draw(32_768),
      restarts: this.#restarts(),
      ticket: null,
      run: null,
      tokens: 0,
      isStarted: false,
      hasEnded: false,
      isOver: false,
      at: -1,
    };
  }

  #enter(one: Open, tokens: number): void {
    one.at = this.#open.length;
    this.#open.push(one);
    try {
      const ticket = this.room.enter(one.content.tenant.account, tokens, {
        granted: (granted) => this.#dispatch(one, granted),
        refused: () => this.#refused(one),
      });
      one.ticket ??= ticket;
    } catch (thrown) {
      if (!(thrown instanceof CodedError)) throw thrown;
      this.#refused(one);
    }
  }

  #refused(one: Open): void {
    this.#close(one);
    this.#turnAway(one.id, 2);
  }

  #turnAway(id: number, code: number): void {
    this.outcomes.turnedAway++;
    this.#trace.record(SIM.verdict, id, code);
  }

  #dispatch(one: Open, ticket: Ticket): void {
    one.ticket = ticket;
    const { tenant, prompt } = one.content;
    const hasHandle = this.#draw(this.#plan.handles) && this.#handles.length > 0;
    const room = this.#draw(this.#plan.rooms) ? this.#chance.below(ROOMS) : ROOMS + one.id;
    one.run = this.#engine.submit(
      {
        tenant: tenant.number,
        salt: this.#isOn('salt') ? tenant.salt : '',
        prompt,
        maxTokens: one.maxTokens,
        temperature: 0,
        seed: 0,
        room: BigInt(room),
        handle: hasHandle ? this.#chance.pick(this.#handles) : null,
        ignoreEos: one.ignoreEos,
      },
      {
        started: (counts) =>
          this.#started(one, counts?.promptTokens ?? 0, counts?.prefillTokens ?? 0, counts?.cachedTokens ?? 0),
        token: (id) => this.#token(one, id),
        end: (end) => this.#ended(one, end),
        released: () => this.#released(one),
      },
    );
  }

  #started(one: Open, promptTokens: number, prefillTokens: number, cachedTokens: number): void {
    this.#trace.record(SIM.started, one.id, promptTokens, prefillTokens, cachedTokens);
    if (one.isStarted || one.hasEnded)
      throw new Violation('everyRequestSettlesOnce', `request ${one.id} started twice`);
    one.isStarted = true;
    this.outcomes.cachedTokens += cachedTokens;
    const mayShare = this.#mayShare(one);
    // A second attempt may find what the first one sealed.
    if (cachedTokens > mayShare && one.restarts === this.#restarts()) {
      throw new Violation(
        'noForeignPrefix',
        `request ${one.id} of tenant ${one.content.tenant.number} was given ${cachedTokens} tokens of kept pages; prompts of its own tenant began like it for ${mayShare}`,
      );
    }
  }

  /** Tokens of its prompt that other prompts of its own tenant had, up to now. */
  #mayShare({ content }: Open): number {
    if (content.uses > 1) return content.prompt.length;
    const seen = content.tenant.seen[content.text];
    if (seen === undefined) return 0;
    return Math.min(content.shared, seen.id === content.id ? seen.others : seen.tokens);
  }

  /** A token that leaves has to be the one that follows from the request's own content. */
  #token(one: Open, token: number): void {
    one.tokens++;
    this.#trace.record(SIM.token, one.id, token, one.tokens);
    const { id, right, content } = one;
    if (!one.isStarted || one.hasEnded) {
      throw new Violation('everyRequestSettlesOnce', `request ${id} got a token before its start or after its end`);
    }
    if (token !== right.next) {
      throw new Violation(
        'noForeignRead',
        `token ${one.tokens} of request ${id} of tenant ${content.tenant.number} does not follow from its own content${this.#breakWords()}`,
      );
    }
    right.feed(token);
    one.run?.acknowledge(one.tokens);
  }

  #ended(one: Open, end: EngineEnd): void {
    const { id, content, right } = one;
    this.#trace.record(SIM.end, id, OUTCOME[end.outcome], one.tokens);
    if (one.hasEnded) throw new Violation('everyRequestSettlesOnce', `request ${id} ended twice`);
    one.hasEnded = true;
    this.outcomes[end.outcome]++;
    one.ticket?.ended();
    if (end.outcome !== 'finished') return;
    if (end.promptTokens !== content.prompt.length || end.prefillTokens !== content.prompt.length) {
      throw new Violation(
        'countsAreTheGateways',
        `request ${id} has ${content.prompt.length} tokens; decode counted ${end.promptTokens}, prefill ${end.prefillTokens}`,
      );
    }
    const isStopped = right.next === TOKEN_EOS && !one.ignoreEos;
    if (!isStopped && one.tokens !== one.maxTokens) {
      throw new Violation(
        'noForeignRead',
        `request ${id} ended after ${one.tokens} of ${one.maxTokens} tokens, and its text goes on${this.#breakWords()}`,
      );
    }
    if (end.handle === '') return;
    this.#handles.push(end.handle);
    if (this.#handles.length > REMEMBERED) this.#handles.shift();
  }

  #released(one: Open): void {
    this.#trace.record(SIM.released, one.id);
    if (!one.hasEnded || one.isOver) {
      throw new Violation('everyRequestSettlesOnce', `request ${one.id} was released before its end, or twice`);
    }
    one.ticket?.released();
    this.#close(one);
  }

  #close(one: Open): void {
    one.isOver = true;
    const last = this.#open.pop();
    if (last === undefined || last === one) return;
    this.#open[one.at] = last;
    last.at = one.at;
  }

  /** Some client leaves, whether its request waits, runs or is nearly over. */
  abort(): void {
    if (this.#open.length === 0) return;
    const one = this.#chance.pick(this.#open);
    this.#trace.record(SIM.abort, one.id);
    if (one.run !== null) return one.run.abort();
    if (one.ticket?.phase !== 'waiting') return;
    one.ticket.cancel();
    this.outcomes.aborted++;
    this.#close(one);
  }

  /** When all has come to rest: what is still open, and what the accounts hold. */
  leftWords(): string | null {
    const first = this.#open[0];
    if (first !== undefined) {
      const rest =
        first.run === null ? 'waits for its turn' : first.hasEnded ? 'has ended and holds pages' : 'has no end';
      return `${this.#open.length} requests are not settled; request ${first.id} ${rest}`;
    }
    const { running, waiting, heldTokens } = this.room;
    if (running + waiting + heldTokens > 0) {
      return `nothing is open, and the gateway counts ${running} running, ${waiting} waiting, ${heldTokens} tokens held`;
    }
    const { finished, refused, failed, aborted, turnedAway } = this.outcomes;
    const settled = finished + refused + failed + aborted + turnedAway;
    return settled === this.submitted ? null : `${this.submitted} requests came, ${settled} were settled`;
  }
}

/** Whose content a token names, for the words of a violation. */
export function ownerWords(token: number): string {
  if (token >= OWN_TOKENS) return `content of request ${token - OWN_TOKENS}`;
  return token === 0 ? 'nothing that was ever written' : 'content that does not go on from there';
}
