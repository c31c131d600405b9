import { randomBytes } from 'node:crypto';
import type { Clock, Timer } from '../base/clock.js';
import { decideAdmission } from '../handoff/admission.js';
import { makeMarker, type Marker } from '../markers/marker.js';
import type {
  AnswerPiece,
  Prompt,
  PromptCounts,
  Upstream,
  UpstreamEnd,
  UpstreamRequest,
  UpstreamRun,
  UpstreamSink,
} from '../upstream/upstream.js';
import { childTraceparent, freshId } from '../wire/index.js';
import { SENTINEL_MS_A_TOKEN, SENTINEL_MS_MAX, SENTINEL_OUTPUT_TOKENS, SENTINEL_PROMPT_TOKENS_MAX } from './bounds.js';
import { type LiveMarkers, SENTINEL_OWNER_NAME } from './live-markers.js';
import type { SentinelOutcome } from './rotation.js';
import type { EngineSafety } from './safety-metrics.js';
import { exactly, isCount, judgeCounts, judgeFinish } from './verdict.js';
import { openAccount, type TenantAccount, type Ticket, type WaitingRoom } from './waiting.js';

export interface SentinelOptions {
  readonly clock: Clock;
  readonly upstream: Upstream;
  /** Where requests of this upstream wait: a sentinel waits in it like a tenant's request. */
  readonly room: WaitingRoom;
  readonly markers: LiveMarkers;
  /** What they cost. */
  readonly metrics: Pick<EngineSafety, 'sentinelTokens'>;
}

/** An owner in the page ledgers that no tenant has: they are numbered from 1, and there are far fewer. */
const SENTINEL_OWNER = 1_000_000;
const FILLER = 'All is well on the wall tonight. ';
const SECRET_BYTES = 32;

/**
 * The gateway's own request through one engine: a synthetic prompt with a marker that was never used, whose count is known and whose
 * answer must have a known shape, and no live marker but its own. It belongs to no tenant and finds no page of one.
 */
export class Sentinels {
  readonly #options: SentinelOptions;
  readonly #account: TenantAccount = openAccount({ number: SENTINEL_OWNER, name: SENTINEL_OWNER_NAME, salt: '' });
  readonly #secret = randomBytes(SECRET_BYTES);
  /** The route that they take through the engine. */
  kind: Prompt['kind'] = 'text';
  #sent = 0;
  #open: SentinelRun | null = null;
  #isClosed = false;

  constructor(options: SentinelOptions) {
    this.#options = options;
  }

  /** Sends one of about `promptTokens`, less where less is admitted. One at a time. */
  async send(promptTokens: number): Promise<SentinelOutcome> {
    const { upstream, markers } = this.#options;
    const marker = makeMarker(this.#secret, SENTINEL_OWNER_NAME, 'now', this.#sent++);
    const prompt = await sentinelPrompt(upstream, this.kind, marker, promptTokens);
    const counted = await exactCount(upstream, prompt);
    const verdict = decideAdmission(counted, SENTINEL_OUTPUT_TOKENS, upstream.capacity());
    if (this.#isClosed || verdict.kind !== 'admitted') return 'unsent';
    markers.addSentinel(marker);
    return new Promise((resolve) => {
      this.#open = new SentinelRun(this.#options, marker, counted, verdict.maxTokens, (outcome) => {
        this.#open = null;
        resolve(outcome);
      });
      this.#open.enter(this.#account, {
        id: freshId(),
        traceparent: childTraceparent(undefined),
        prompt,
        promptTokens: counted,
        maxTokens: verdict.maxTokens,
        temperature: 0,
        seed: 0,
        tenant: SENTINEL_OWNER,
        salt: randomBytes(SECRET_BYTES).toString('hex'),
        engineFields: {},
      });
    });
  }

  /** Ends the one that is open; none follows. */
  close(): void {
    this.#isClosed = true;
    this.#open?.give('unsent');
  }
}

/** A prompt of at most `promptTokens` tokens and of what is admitted, with the marker at its beginning; longer only by the marker itself. */
async function sentinelPrompt(
  upstream: Upstream,
  kind: Prompt['kind'],
  marker: Marker,
  promptTokens: number,
): Promise<Prompt> {
  const { context, prefillPool, decodePool } = upstream.capacity();
  const limit = Math.min(context ?? 0, prefillPool ?? 0, decodePool ?? 0) - SENTINEL_OUTPUT_TOKENS;
  const wanted = Math.min(promptTokens, SENTINEL_PROMPT_TOKENS_MAX, limit);
  const first = `${marker.text}. `;
  const left = wanted - (await exactCount(upstream, promptOf(kind, first + FILLER)));
  const times = Math.max(0, Math.floor(left / Math.max(1, await exactCount(upstream, { kind: 'text', text: FILLER }))));
  return promptOf(kind, first + FILLER.repeat(times + (left >= 0 ? 1 : 0)));
}

function promptOf(kind: Prompt['kind'], text: string): Prompt {
  return kind === 'text' ? { kind, text } : { kind, messages: [{ role: 'user', content: text }] };
}

async function exactCount(upstream: Upstream, prompt: Prompt): Promise<number> {
  const count = upstream.count(prompt);
  return count.kind === 'exact' ? count.tokens : count.exact();
}

class SentinelRun implements UpstreamSink {
  readonly #o: SentinelOptions;
  readonly #marker: Marker;
  readonly #counted: number;
  readonly #maxTokens: number;
  readonly #done: (outcome: SentinelOutcome) => void;
  #ticket: Ticket | null = null;
  #run: UpstreamRun | null = null;
  #timer: Timer | null = null;
  #text = '';
  #came = 0;
  #hasEnded = false;
  #isOver = false;

  constructor(
    options: SentinelOptions,
    marker: Marker,
    counted: number,
    maxTokens: number,
    done: (outcome: SentinelOutcome) => void,
  ) {
    this.#o = options;
    this.#marker = marker;
    this.#counted = counted;
    this.#maxTokens = maxTokens;
    this.#done = done;
  }

  enter(account: TenantAccount, request: UpstreamRequest): void {
    try {
      const ticket = this.#o.room.enter(account, this.#counted + this.#maxTokens - 1, {
        granted: (granted) => this.#dispatch(granted, request),
        refused: () => this.give('unsent'),
      });
      this.#ticket ??= ticket;
    } catch {
      this.give('unsent');
    }
  }

  #dispatch(ticket: Ticket, request: UpstreamRequest): void {
    this.#ticket = ticket;
    this.#o.metrics.sentinelTokens(this.#counted, 0);
    this.#timer = this.#o.clock.after(SENTINEL_MS_MAX + this.#counted * SENTINEL_MS_A_TOKEN, () => this.give('failed'));
    try {
      this.#run = this.#o.upstream.start(request, this);
    } catch {
      if (!this.#hasEnded) ticket.ended();
      this.#hasEnded = true;
      if (ticket.phase === 'draining') ticket.released();
      return this.give('failed');
    }
    if (this.#isOver && !this.#hasEnded) this.#run.abort();
  }

  /** The outcome, once; what is still open is given up. */
  give(outcome: SentinelOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    if (this.#ticket?.phase === 'waiting') this.#ticket.cancel();
    if (!this.#hasEnded) this.#run?.abort();
    this.#done(outcome);
  }

  started(counts: PromptCounts | null): void {
    if (counts !== null && judgeCounts(exactly(this.#counted), counts) !== 'agrees') this.give('failed');
  }

  text(piece: string, tokens: number): void {
    if (this.#isOver) return;
    const isTooMuch = this.#exactPieces && this.#came + tokens > this.#maxTokens;
    if (typeof piece !== 'string' || !isCount(tokens) || isTooMuch) return this.give('failed');
    this.#text += piece;
    this.#came += tokens;
    this.#o.metrics.sentinelTokens(0, tokens);
    this.#run?.acknowledge(this.#came);
  }

  /** It asked for plain text, and a model may think or refuse all the same; it offered no tool. */
  piece(piece: AnswerPiece, tokens: number): void {
    if (piece.kind === 'tool-call') this.give('failed');
    else this.text(piece.text, tokens);
  }

  /** Whether a piece has as many tokens as are said with it. */
  get #exactPieces(): boolean {
    return this.#o.upstream.describe().exactPieces ?? true;
  }

  end(end: UpstreamEnd): void {
    this.#hasEnded = true;
    this.#ticket!.ended();
    if (this.#isOver) return;
    this.give(end.kind === 'finished' && this.#isWell(end) ? 'passed' : 'failed');
  }

  #isWell({ usage, finishReason }: Extract<UpstreamEnd, { kind: 'finished' }>): boolean {
    if (judgeFinish(exactly(this.#counted), this.#maxTokens, usage, finishReason) !== 'agrees') return false;
    const { completionTokens } = usage;
    if (this.#exactPieces && this.#came !== completionTokens) return false;
    if (finishReason === 'length' && completionTokens !== this.#maxTokens) return false;
    return !this.#o.markers.holdsOther(this.#text, this.#marker);
  }

  released(): void {
    this.#ticket!.released();
  }
}
