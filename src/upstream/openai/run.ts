import type { ErrorCode } from '../../base/errors.js';
import type { GuardName } from '../../handoff/guards.js';
import { SseOverflow, SseReader } from '../../wire/index.js';
import { EngineCall, type EngineCallOptions, type EngineCallSink } from '../engine-call.js';
import type { AnswerPiece, FinishReason, UpstreamEnd, UpstreamRun, UpstreamSink, UpstreamUsage } from '../upstream.js';
import { type AnswerPart, errorKind, readAnswer, readChunk, type Wanted } from './read.js';

/** Pieces that may come ahead of the reader before the engine's socket is left alone. */
const AHEAD_PIECES_MAX = 64;
/** Bytes of an error body that are read to see its kind. */
const ERROR_BYTES_MAX = 64 * 1024;
const HTTP_OK = 200;

/** What an engine's own error means; null: nothing more than that it failed. */
export interface ErrorMeaning {
  readonly code: ErrorCode;
  /** The engine's own guard that stopped the request, where one did. */
  readonly guard: GuardName | null;
}

/** Knows one engine's errors. `status` null: the error was inside a 200. `error` may be anything, and is never repeated. */
export type ErrorReader = (status: number | null, error: unknown) => ErrorMeaning | null;

/** One request at an OpenAI-compatible engine: its answer read, its usage kept, exactly one end. */
export class OpenAiRun implements UpstreamRun, EngineCallSink {
  readonly #sink: UpstreamSink;
  readonly #call: EngineCall;
  readonly #sse: SseReader | null;
  readonly #errors: ErrorReader;
  readonly #wanted: Wanted;
  readonly #calls = new Map<number, ToolCall>();
  #whole: Buffer[] = [];
  #wholeBytes = 0;
  #status = 0;
  #came = 0;
  #taken = 0;
  #finishReason: FinishReason | null = null;
  #usage: UpstreamUsage | null = null;
  #ended = false;
  #released = false;

  /** `errors`: how this engine's errors are read. @default by status alone */
  constructor(
    call: EngineCallOptions,
    streamed: boolean,
    wanted: Wanted,
    sink: UpstreamSink,
    errors: ErrorReader = () => null,
  ) {
    this.#sink = sink;
    this.#errors = errors;
    this.#wanted = wanted;
    this.#sse = streamed ? new SseReader((data) => this.#event(data)) : null;
    this.#call = new EngineCall(call, this);
  }

  /** What it has said of its counts so far; null: nothing. */
  get usage(): UpstreamUsage | null {
    return this.#usage;
  }

  abort(): void {
    this.#end({ kind: 'aborted', usage: this.#usage });
    this.#call.abort();
    this.#release();
  }

  acknowledge(tokens: number): void {
    this.#taken = tokens;
    if (this.#came - this.#taken <= AHEAD_PIECES_MAX) this.#call.resume();
  }

  answered(status: number, contentType: string): void {
    this.#status = status;
    if (status !== HTTP_OK) return;
    const wanted = this.#sse === null ? 'application/json' : 'text/event-stream';
    if (!contentType.toLowerCase().startsWith(wanted)) {
      this.#fail('engine_failed', `expected an answer of the type ${wanted}, got another one`);
    } else if (this.#sse !== null) this.#sink.started(null);
  }

  data(chunk: Buffer): void {
    if (this.#ended) return;
    if (this.#status === HTTP_OK && this.#sse !== null) return this.#push(this.#sse, chunk);
    this.#wholeBytes += chunk.length;
    if (this.#status === HTTP_OK || this.#wholeBytes <= ERROR_BYTES_MAX) this.#whole.push(chunk);
  }

  over(failure: string | null): void {
    if (!this.#ended) this.#overUnended(failure);
    this.#release();
  }

  #overUnended(failure: string | null): void {
    if (failure !== null) this.#fail(this.#status === 0 ? 'engine_unavailable' : 'engine_failed', failure);
    else if (this.#status !== HTTP_OK) this.#failStatus();
    else if (this.#sse === null) this.#wholeAnswer();
    else if (this.#sse.cut) this.#fail('engine_failed', 'the stream was cut inside an event');
    else this.#finish();
  }

  #push(sse: SseReader, chunk: Buffer): void {
    try {
      sse.push(chunk);
    } catch (thrown) {
      if (!(thrown instanceof SseOverflow)) throw thrown;
      this.#fail('engine_failed', 'an event of the stream went on without an end');
    }
    if (this.#came - this.#taken > AHEAD_PIECES_MAX && !this.#ended) this.#call.pause();
  }

  #event(data: string): void {
    if (this.#ended) return;
    if (data === '[DONE]') return this.#finish();
    const part = readChunk(data, this.#wanted);
    if (!this.#took(part)) return;
    if (part.text === '' && part.pieces.length === 0) return;
    // An event may hold several tokens: where it carries the usage so far, that tells how many.
    const tokens = Math.max(1, (part.usage?.completionTokens ?? 0) - this.#came);
    this.#came += tokens;
    if (part.text !== '') this.#sink.text(part.text, tokens);
    else this.#pieces(part.pieces, tokens);
  }

  #wholeAnswer(): void {
    const part = readAnswer(Buffer.concat(this.#whole).toString('utf8'), this.#wanted);
    if (!this.#took(part)) return;
    const tokens = part.usage?.completionTokens ?? 1;
    this.#sink.started(part.usage);
    if (!this.#ended && part.text !== '') this.#sink.text(part.text, tokens);
    this.#pieces(part.pieces, tokens);
    this.#finish();
  }

  /** The tokens of an event go with its first piece. */
  #pieces(pieces: readonly AnswerPiece[], tokens: number): void {
    let left = tokens;
    for (const piece of pieces) {
      if (this.#ended) return;
      if (piece.kind === 'text' && piece.logprobs.length === 0) this.#sink.text(piece.text, left);
      else if (piece.kind === 'tool-call') this.#toolCall(piece, left);
      else this.#sink.piece(piece, left);
      left = 0;
    }
  }

  /** Some engines say the name of a call again with every piece, and a new id: the first ones are the call's. */
  #toolCall(piece: Extract<AnswerPiece, { kind: 'tool-call' }>, tokens: number): void {
    const known = this.#calls.get(piece.index);
    if (known === undefined) this.#calls.set(piece.index, { id: piece.id, name: piece.name });
    else if (known.name !== null && piece.name !== null && known.name !== piece.name)
      return this.#fail('engine_failed', 'a tool call changed its name');
    const id = known?.id != null ? null : piece.id;
    const name = known?.name != null ? null : piece.name;
    if (known !== undefined) this.#calls.set(piece.index, { id: known.id ?? id, name: known.name ?? name });
    this.#sink.piece(id === piece.id && name === piece.name ? piece : { ...piece, id, name }, tokens);
  }

  /** Keeps what a part says of the end; false, with the request failed, where it is not a part. */
  #took(part: AnswerPart): part is Extract<AnswerPart, { kind: 'part' }> {
    if (part.kind === 'failure') {
      const meaning = part.error === undefined ? null : this.#errors(null, part.error);
      this.#fail(meaning?.code ?? 'engine_failed', part.failure, meaning?.guard);
      return false;
    }
    this.#finishReason = part.finishReason ?? this.#finishReason;
    this.#usage = part.usage ?? this.#usage;
    return true;
  }

  #finish(): void {
    if (this.#ended) return;
    if (this.#finishReason === null) this.#fail('engine_failed', 'the answer ended without a finish reason');
    else if (this.#usage === null) this.#fail('verification_failed', 'the answer came without its usage');
    else this.#end({ kind: 'finished', finishReason: this.#finishReason, usage: this.#usage });
  }

  #failStatus(): void {
    const error = errorOf(this.#whole);
    const detail = `status ${this.#status}, ${error === undefined ? 'a body that is not JSON' : errorKind(error)}`;
    const meaning = this.#errors(this.#status, error);
    if (meaning !== null) this.#fail(meaning.code, detail, meaning.guard);
    else if (this.#status === 429) this.#fail('no_capacity', detail);
    else if (this.#status >= 502 && this.#status <= 504) this.#fail('engine_unavailable', detail);
    else this.#fail('engine_failed', detail);
  }

  #fail(code: ErrorCode, detail: string, stoppedBy?: GuardName | null): void {
    const guard = stoppedBy ?? (code === 'verification_failed' ? 'usage' : null);
    this.#end({
      kind: 'failed',
      code,
      message: MESSAGES[code] ?? 'The engine failed; send the request again.',
      detail,
      guard,
      ...(code === 'engine_unavailable' && this.#status === 0 ? { isTransport: true } : {}),
    });
    this.#call.abort();
  }

  #end(end: UpstreamEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#whole = [];
    this.#sink.end(end);
  }

  /** Nothing of the request is left here. What the engine still holds, it does not say. */
  #release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#sink.released();
  }
}

interface ToolCall {
  readonly id: string | null;
  readonly name: string | null;
}

const MESSAGES: Partial<Record<ErrorCode, string>> = {
  no_capacity: 'The engine has no room for the request now; send it again later.',
  engine_unavailable: 'The engine can not be reached; send the request again later.',
  verification_failed: 'The engine did not say how many tokens it read, so its answer was withheld.',
};

/** The error object of a body; undefined: it is no JSON. */
export function errorOf(body: readonly Buffer[]): unknown {
  try {
    const value = JSON.parse(Buffer.concat(body).toString('utf8')) as { error?: unknown } | null;
    return value?.error ?? value;
  } catch {
    return undefined;
  }
}
