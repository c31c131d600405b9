import type { AnswerPiece, TokenLogprob } from '../upstream/upstream.js';
import {
  type AnswerRest,
  type ChunkWriter,
  logprobsJson,
  reasoningDelta,
  refusalDelta,
  StopMatcher,
  toolCallDelta,
} from '../wire/index.js';
import type { AnswerGuard } from './guard/answer-guard.js';
import type { Foreign } from './guard/channel.js';
import { type OtherPiece, RichAnswer } from './guard/rich-answer.js';
import { asksForLogprobs, type ParsedRequest } from './policy.js';

export interface OutgoingOptions {
  /** Stop sequences: of the content alone. */
  readonly stop: readonly string[];
  /** Null: the answer leaves whole. */
  readonly chunks: ChunkWriter | null;
  /** Whether probabilities were asked for; others do not leave. */
  readonly logprobs: boolean;
  readonly isChat: boolean;
  /** The id of a call for which the engine gave none. */
  readonly callId: (index: number) => string;
}

interface WholeCall {
  id: string;
  name: string;
  arguments: string;
}

const NO_LOGPROBS: readonly TokenLogprob[] = [];

/**
 * One answer on its way to its client: stop sequences, the guard of every channel, and the form in which it leaves, as frames of a
 * stream or gathered for a whole answer.
 */
export class Outgoing {
  readonly #options: OutgoingOptions;
  readonly #stops: StopMatcher;
  readonly #chunks: ChunkWriter | null;
  /** Null: no marker is live. */
  #guard: AnswerGuard | null = null;
  /** Null: plain text so far. */
  #rich: RichAnswer | null = null;
  /** Characters of content that have left. */
  #contentLeft = 0;
  #logprobCharacters = 0;
  #text = '';
  #reasoning = '';
  #refusal = '';
  readonly #calls: WholeCall[] = [];
  readonly #logprobs: TokenLogprob[] = [];

  constructor(options: OutgoingOptions) {
    this.#options = options;
    this.#chunks = options.chunks;
    this.#stops = new StopMatcher(options.stop);
  }

  /** Before the first piece. */
  guardWith(guard: AnswerGuard | null): void {
    this.#guard = guard;
    if (this.#options.logprobs) this.#rich = new RichAnswer(guard);
  }

  /** Whether a stop sequence was met: nothing more leaves then but what came before it. */
  get stopped(): boolean {
    return this.#stops.hit;
  }

  /** What proves that the answer is not the request's own; every method gives nothing from then on. */
  get foreign(): Foreign | null {
    return this.#guard === null ? null : this.#guard.foreign;
  }

  /** Takes plain text; gives the frames that may leave by now, none for a whole answer. */
  text(piece: string): string {
    if (this.#rich !== null) return this.#withLogprobs(this.#rich, piece, NO_LOGPROBS);
    const free = this.#stops.push(piece);
    const leaving = this.#guard === null ? free : this.#guard.content.push(free);
    return leaving === '' ? '' : this.#leave(leaving);
  }

  /** Takes any other piece, likewise. */
  piece(piece: AnswerPiece): string {
    this.#rich ??= new RichAnswer(this.#guard);
    const rich = this.#rich;
    if (piece.kind === 'text')
      return this.#withLogprobs(rich, piece.text, this.#options.logprobs ? piece.logprobs : NO_LOGPROBS);
    const pieces = rich.push(piece);
    if (this.foreign !== null) return '';
    const rest = this.#guard?.content.flush() ?? '';
    this.#contentLeft += rest.length;
    return (rest === '' ? '' : this.#leave(rest)) + this.#others(pieces);
  }

  /** What was held back, once no more comes. */
  last(): string {
    const others = this.#rich === null ? '' : this.#others(this.#rich.flush());
    const free = this.#stops.flush();
    const rest = this.#guard === null ? free : this.#guard.content.push(free) + this.#guard.content.flush();
    if (this.foreign !== null) return '';
    if (this.#rich === null) return rest === '' ? '' : this.#leave(rest);
    return others + this.#leaveWith(rest, this.#takeLogprobs(this.#rich, rest, true));
  }

  /** The text of a whole answer, and what else is in it. */
  whole(): { readonly text: string; readonly rest: AnswerRest } {
    const logprobs = this.#options.logprobs ? this.#logprobs : null;
    // Calls may have come out of order, or with gaps between their places.
    const toolCalls = this.#calls.filter((call) => call !== undefined);
    return { text: this.#text, rest: { reasoning: this.#reasoning, refusal: this.#refusal, toolCalls, logprobs } };
  }

  #withLogprobs(rich: RichAnswer, piece: string, logprobs: readonly TokenLogprob[]): string {
    const others = this.#others(rich.flush());
    rich.logprobs.push(logprobs, piece.length);
    const free = this.#stops.push(piece);
    const leaving = this.#guard === null ? free : this.#guard.content.push(free);
    if (this.foreign !== null) return '';
    return others + this.#leaveWith(leaving, this.#takeLogprobs(rich, leaving, false));
  }

  #takeLogprobs(rich: RichAnswer, leaving: string, isLast: boolean): readonly TokenLogprob[] {
    this.#contentLeft += leaving.length;
    return rich.logprobs.take(this.#contentLeft, isLast);
  }

  #leaveWith(text: string, logprobs: readonly TokenLogprob[]): string {
    if (logprobs.length === 0) return text === '' ? '' : this.#leave(text);
    if (this.#chunks === null) {
      this.#text += text;
      for (const each of logprobs) this.#logprobs.push(each);
      return '';
    }
    const offset = this.#logprobCharacters;
    for (const { token } of logprobs) this.#logprobCharacters += token.length;
    return this.#chunks.textWith(text, logprobsJson(this.#options.isChat, logprobs, offset));
  }

  #leave(text: string): string {
    if (this.#chunks !== null) return this.#chunks.text(text);
    this.#text += text;
    return '';
  }

  #others(pieces: readonly OtherPiece[]): string {
    let frames = '';
    for (const piece of pieces) frames += this.#other(piece);
    return frames;
  }

  #other(piece: OtherPiece): string {
    const chunks = this.#chunks;
    if (piece.kind === 'tool-call') return this.#call(piece);
    const { kind, text } = piece;
    if (chunks !== null) return chunks.delta(kind === 'reasoning' ? reasoningDelta(text) : refusalDelta(text));
    if (kind === 'reasoning') this.#reasoning += text;
    else this.#refusal += text;
    return '';
  }

  #call(piece: Extract<OtherPiece, { kind: 'tool-call' }>): string {
    const { index, name, arguments: args } = piece;
    const known = this.#calls[index];
    const id = known === undefined ? (piece.id ?? this.#options.callId(index)) : null;
    const call = known ?? { id: id!, name: '', arguments: '' };
    this.#calls[index] = call;
    if (name !== null) call.name = name;
    if (this.#chunks !== null) return this.#chunks.delta(toolCallDelta(index, id, name, args));
    call.arguments += args;
    return '';
  }
}

/** For the answer to one request, whose id of ours is `id`. */
export function outgoingOf(parsed: ParsedRequest, chunks: ChunkWriter | null, id: string): Outgoing {
  return new Outgoing({
    stop: parsed.stop,
    chunks,
    logprobs: asksForLogprobs(parsed),
    isChat: parsed.route === 'chat',
    callId: (index) => `call_${id}${index}`,
  });
}
