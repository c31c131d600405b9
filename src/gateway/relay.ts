import { assert } from '../base/assert.js';
import { CodedError } from '../base/errors.js';
import { type GuardBits, guardBit } from '../handoff/guards.js';
import type {
  AnswerPiece,
  FinishReason,
  PromptCounts,
  Upstream,
  UpstreamEnd,
  UpstreamRequest,
  UpstreamRun,
  UpstreamSink,
} from '../upstream/upstream.js';
import { type AnswerHead, answerJson, ChunkWriter, SSE_DONE, type Usage } from '../wire/index.js';
import type { Exchange, Interruption } from './exchange.js';
import { ownNumbers, shownWords, tenantError } from './engine-words.js';
import {
  completionFinding,
  engineErrorFinding,
  foreignMarkerFinding,
  internalFinding,
  usageFinding,
} from './findings.js';
import type { Foreign } from './guard/channel.js';
import { type Outgoing, outgoingOf } from './outgoing.js';
import { asksForTools, type ParsedRequest } from './policy.js';
import { Reader } from './reader.js';
import type { RelayContext } from './relay-context.js';
import type { Settling } from './settlement.js';
import type { Shielded } from './shield.js';
import type { Tally } from './tally.js';
import {
  isCount,
  isPiece,
  isSuspicion,
  judgeCounts,
  judgeFinish,
  sensibleCached,
  sensibleReason,
  type Verdict,
} from './verdict.js';
import type { TenantAccount, Ticket } from './waiting.js';

const USAGE: GuardBits = guardBit('usage');
const POLICY: GuardBits = guardBit('policy');

/**
 * One request from its dispatch to its release: the upstream's events in order, its text to the client at the client's pace,
 * its usage against our count, and everything given back, once, however it ends.
 */
export class Relay implements UpstreamSink {
  readonly #context: RelayContext;
  readonly #exchange: Exchange;
  readonly #account: TenantAccount;
  readonly #parsed: ParsedRequest;
  /** Tokens of the prompt as counted here: exact, or bounds until the exact count is there, which is before the answer ends. */
  readonly #tally: Tally;
  readonly #settling: Settling;
  /** What the engine has said of the prompt, to be compared once more with the exact count. */
  #said: PromptCounts | null = null;
  readonly #head: AnswerHead;
  readonly #reader: Reader;
  readonly #chunks: ChunkWriter | null;
  readonly #out: Outgoing;
  /** Tokens of output that were granted. */
  #maxTokens = 0;
  #ticket: Ticket | null = null;
  #run: UpstreamRun | null = null;
  /** Tokens of output that came, and that the reader took. Invariant: acknowledged <= came. */
  #came = 0;
  #acknowledged = 0;
  /** The client has left and the request goes on to its first token. */
  #shielded: Shielded | null = null;
  #abortWanted = false;
  #aborted = false;
  #ended = false;

  constructor(
    context: RelayContext,
    exchange: Exchange,
    account: TenantAccount,
    parsed: ParsedRequest,
    tally: Tally,
    settling: Settling,
  ) {
    this.#context = context;
    this.#exchange = exchange;
    this.#account = account;
    this.#parsed = parsed;
    this.#tally = tally;
    this.#settling = settling;
    this.#head = {
      route: parsed.route,
      id: `${parsed.route === 'chat' ? 'chatcmpl' : 'cmpl'}-${exchange.id}`,
      createdS: Math.floor(context.clock.wallMs() / 1000),
      model: parsed.model,
    };
    this.#reader = new Reader(context.clock, exchange.response);
    this.#chunks = parsed.stream ? new ChunkWriter(this.#head, parsed.includeUsage) : null;
    this.#out = outgoingOf(parsed, this.#chunks, exchange.id);
  }

  /** Sends the request; from here on `ticket` goes back through `end` and `released`. */
  dispatch(ticket: Ticket, upstream: Upstream, request: UpstreamRequest): void {
    this.#ticket = ticket;
    this.#maxTokens = request.maxTokens;
    this.#out.guardWith(this.#context.watch.markers.guard(this.#account.tenant.name, request.prompt));
    this.#exchange.onInterrupt = (why) => this.#interrupted(why);
    this.#settling.dispatched(request.id);
    try {
      this.#run = upstream.start(request, this);
      this.#settling.atNodes(this.#run.nodes);
    } catch (thrown) {
      this.#startThrew(thrown);
      return;
    }
    // Events may have come before `start` returned.
    if (this.#abortWanted) this.#abort();
    else this.#acknowledge();
    if (!this.#tally.isExact) void this.#countWhileItRuns(ticket);
  }

  /** Bounds admitted it: the exact count is made while the engine works. */
  async #countWhileItRuns(ticket: Ticket): Promise<void> {
    try {
      await this.#tally.makeExact();
    } catch {
      // Without a count nothing is verified: the end says so.
      return;
    }
    ticket.shrink(this.#tally.most + this.#maxTokens - 1);
    if (this.#said === null || this.#exchange.settled) return;
    this.#believe(judgeCounts(this.#tally, this.#said), this.#said, null);
  }

  #startThrew(thrown: unknown): void {
    this.#context.findings.raise(internalFinding(thrown));
    if (!this.#ended) this.#ticket!.ended();
    this.#ended = true;
    if (this.#ticket!.phase === 'draining') {
      this.#ticket!.released();
      this.#settling.released();
    }
    this.#fail(new CodedError('engine_failed', 'The engine did not take the request.', { cause: thrown }));
  }

  started(counts: PromptCounts | null): void {
    // Counts are judged for nobody too: what they say of the engine concerns everybody.
    if (counts === null || this.#abortWanted) return;
    this.#said = counts;
    this.#settling.said(counts);
    this.#believe(judgeCounts(this.#tally, counts), counts, null);
  }

  text(piece: string, tokens: number): void {
    if (this.#shielded !== null) return this.#endShield();
    if (this.#exchange.settled || this.#out.stopped) return;
    if (typeof piece !== 'string' || !isCount(tokens)) return this.#failNonsense();
    this.#take(tokens);
    this.#leave(this.#out.text(piece));
  }

  piece(piece: AnswerPiece, tokens: number): void {
    if (this.#shielded !== null) return this.#endShield();
    if (this.#exchange.settled || this.#out.stopped) return;
    const wasAskedFor = piece.kind !== 'tool-call' || asksForTools(this.#parsed);
    if (!wasAskedFor || !isPiece(piece) || !isCount(tokens)) return this.#failNonsense();
    this.#take(tokens);
    this.#leave(this.#out.piece(piece));
  }

  #take(tokens: number): void {
    if (this.#came === 0) {
      this.#context.metrics.firstText(this.#context.clock.nowMs() - this.#exchange.arrivedMs);
      this.#settling.firstText();
    }
    this.#came += tokens;
  }

  /** Sends the frames that may leave, unless they came with what belongs to somebody else. */
  #leave(frames: string): void {
    const { foreign } = this.#out;
    if (foreign !== null) return this.#failForeign(foreign);
    if (this.#chunks !== null) this.#stream(this.#chunks, frames);
    if (this.#out.stopped) this.#abort();
    else if (!this.#reader.isBehind) this.#acknowledge();
  }

  end(end: UpstreamEnd): void {
    assert(!this.#ended, 'an upstream ends a request once');
    this.#ended = true;
    this.#ticket!.ended();
    this.#settling.upstreamEnded(end, this.#came);
    this.#shielded?.over('ended');
    if (this.#exchange.settled) return;
    if (end.kind === 'failed') this.#failAsEngine(end);
    else if (end.kind === 'finished') this.#whenCounted(() => this.#finished(end));
    else if (this.#out.stopped) this.#whenCounted(() => this.#stoppedHere(end.usage));
    else this.#fail(new CodedError('engine_failed', 'The engine ended the request before its answer was complete.'));
  }

  /** Holds the end of the answer until the exact count can be compared. */
  #whenCounted(finish: () => void): void {
    if (this.#tally.isExact) return finish();
    const then = (isCounted: boolean): void => {
      if (this.#exchange.settled) return;
      if (isCounted || !this.#guarded) finish();
      else this.#failUncounted();
    };
    this.#tally
      .makeExact()
      .then(
        () => then(true),
        () => then(false),
      )
      .catch((thrown: unknown) => {
        this.#context.findings.raise(internalFinding(thrown));
        this.#exchange.refuse(thrown);
      });
  }

  #failUncounted(): void {
    this.#context.metrics.guardHit('usage');
    this.#fail(
      new CodedError(
        'verification_failed',
        'The prompt could not be counted exactly, so its answer could not be verified and was withheld. Send the request again.',
      ),
    );
  }

  released(): void {
    assert(this.#ended, 'an upstream releases a request after its end');
    this.#ticket!.released();
    this.#settling.released();
  }

  #interrupted(why: Interruption): void {
    if (why !== 'gone') this.#fail(why);
    else if (this.#came > 0 || this.#abortWanted || this.#ended || !this.#enterShield()) this.#abort();
  }

  #enterShield(): boolean {
    this.#shielded = this.#context.shield.enter(this.#account, this.#counted, this.#context.engine, () =>
      this.#abort(),
    );
    return this.#shielded !== null;
  }

  /** The first token has come, so the transfer is over: now the protocol ends the request. */
  #endShield(): void {
    this.#shielded!.over('first_token');
    this.#abort();
  }

  #finished(end: Extract<UpstreamEnd, { kind: 'finished' }>): void {
    const { usage } = end;
    const verdict = judgeFinish(this.#tally, this.#maxTokens, usage, end.finishReason);
    if (!this.#believe(verdict, usage, usage.completionTokens)) return;
    const stopped = this.#out.stopped;
    if (!stopped && this.#exactPieces && usage.completionTokens !== this.#came) {
      this.#context.findings.raise(completionFinding(this.#came, usage.completionTokens));
    }
    this.#complete(
      stopped ? 'stop' : sensibleReason(end.finishReason),
      {
        promptTokens: this.#guarded || !isCount(usage.promptTokens) ? this.#counted : usage.promptTokens,
        completionTokens: stopped || this.#exactPieces ? this.#came : usage.completionTokens,
        cachedTokens: sensibleCached(usage.cachedTokens, this.#counted),
      },
      end.engineAnswer,
    );
  }

  /** A stop sequence was met, so the engine was told to end: its count of the prompt is compared all the same. */
  #stoppedHere(usage: PromptCounts | null): void {
    if (usage !== null && !this.#believe(judgeCounts(this.#tally, usage), usage, null)) return;
    this.#complete(
      'stop',
      { promptTokens: this.#counted, completionTokens: this.#came, cachedTokens: null },
      undefined,
    );
  }

  /** Tokens of the prompt, at the most. */
  get #counted(): number {
    return this.#tally.most;
  }

  get #exactPieces(): boolean {
    return this.#context.upstream.describe().exactPieces ?? true;
  }

  get #guarded(): boolean {
    return (this.#context.guards & USAGE) !== 0;
  }

  /** Whether the answer may go on. Where not, it has been withheld, and the operators know. */
  #believe(verdict: Verdict, said: PromptCounts, completionTokens: number | null): boolean {
    if (verdict === 'agrees' || !this.#guarded) return true;
    const { metrics, safety, findings } = this.#context;
    metrics.guardHit('usage');
    safety.doubted(verdict);
    findings.raise(usageFinding(verdict, this.#tally, said, completionTokens));
    this.#fail(
      new CodedError(
        'verification_failed',
        'The engine did not count the prompt that was sent, so its answer was withheld. Send the request again.',
      ),
    );
    if (isSuspicion(verdict)) this.#context.watch.suspect(this.#counted);
    return false;
  }

  /** Proof. The request itself ends first, then everything else on that engine. */
  #failForeign(foreign: Foreign): void {
    const { safety, findings, watch } = this.#context;
    safety.doubted('foreign-marker');
    findings.raise(foreignMarkerFinding(this.#account.tenant.name, foreign));
    this.#fail(
      new CodedError(
        'verification_failed',
        'The answer could not be verified and was withheld. Send the request again.',
      ),
    );
    watch.prove(this.#counted);
  }

  /** What came is no text, whatever guards are on: nothing of it may leave. */
  #failNonsense(): void {
    const nothing = { promptTokens: this.#counted, prefillTokens: null };
    this.#context.safety.doubted('nonsense');
    this.#context.findings.raise(usageFinding('nonsense', this.#tally, nothing, null));
    this.#fail(new CodedError('engine_failed', 'The engine sent something that is no answer. Send the request again.'));
    this.#context.watch.suspect(this.#counted);
  }

  #complete(reason: FinishReason, usage: Usage, engineAnswer: Readonly<Record<string, unknown>> | undefined): void {
    const { metrics, clock, guards } = this.#context;
    const last = this.#out.last();
    if (this.#out.foreign !== null) return this.#failForeign(this.#out.foreign);
    metrics.answered(clock.nowMs() - this.#exchange.arrivedMs);
    if (this.#chunks !== null) {
      this.#beginStream(this.#chunks);
      const usageFrame = this.#parsed.includeUsage ? this.#chunks.usage(usage) : '';
      this.#exchange.endStream(last + this.#chunks.finish(reason) + usageFrame + SSE_DONE);
      this.#reader.boundEnd();
      return;
    }
    const passes = engineAnswer !== undefined && (guards & POLICY) === 0;
    const extra = passes ? `,${JSON.stringify(engineAnswer).slice(1, -1)}` : '';
    const { text, rest } = this.#out.whole();
    this.#exchange.answer(200, answerJson(this.#head, text, reason, usage, extra === ',' ? '' : extra, rest));
  }

  #failAsEngine(end: Extract<UpstreamEnd, { kind: 'failed' }>): void {
    const own = { counted: this.#counted, maxTokens: this.#maxTokens, capacity: this.#context.upstream.capacity() };
    const error = tenantError(end.code, own);
    const text = String(end.detail);
    this.#context.findings.raise(engineErrorFinding(error.code, end.guard, text, shownWords(text, ownNumbers(own))));
    this.#fail(error);
    if (end.isTransport === true) this.#context.watch.suspectTransport();
  }

  /** The client is told first: an engine may end an aborted request at once, and its words must not be the ones that leave. */
  #fail(error: CodedError): void {
    this.#exchange.refuse(error);
    this.#abort();
  }

  /** Tells the upstream to end the request; once, and not after its end. */
  #abort(): void {
    this.#abortWanted = true;
    if (this.#aborted || this.#ended || this.#run === null) return;
    this.#aborted = true;
    this.#run.abort();
  }

  #beginStream(chunks: ChunkWriter): void {
    if (this.#exchange.response.headersSent) return;
    this.#exchange.beginStream();
    const opening = chunks.opening();
    if (opening !== '') this.#exchange.response.write(opening);
  }

  #stream(chunks: ChunkWriter, frames: string): void {
    this.#beginStream(chunks);
    if (frames === '') return;
    // Behind, nothing more is acknowledged until the reader has taken what is buffered, and the engine then stops a bounded number
    // of tokens ahead. No other stream is touched.
    this.#reader.write(frames, () => this.#acknowledge());
  }

  #acknowledge(): void {
    if (this.#run === null || this.#ended || this.#acknowledged === this.#came) return;
    this.#acknowledged = this.#came;
    this.#run.acknowledge(this.#came);
  }
}
