import type { AnswerPiece } from '../../upstream/upstream.js';
import type { AnswerGuard } from './answer-guard.js';
import type { ChannelGuard } from './channel.js';
import { LogprobQueue } from './logprobs.js';

export type OtherPiece = Exclude<AnswerPiece, { kind: 'text' }>;

/** One channel of text besides the content. */
interface Channel {
  /** Null: no marker is live. */
  readonly guard: ChannelGuard | null;
  /** The piece with which its text leaves. */
  readonly as: (text: string) => OtherPiece;
}

const NOTHING: readonly OtherPiece[] = [];

/**
 * What an answer holds besides plain text, on its way out: each channel through its own guard. What a channel holds back leaves when
 * another one follows or the answer ends, since it is no whole stretch; so a client gets the channels in the engine's order.
 */
export class RichAnswer {
  readonly logprobs: LogprobQueue;
  readonly #guard: AnswerGuard | null;
  /** By kind; those of calls by their place. */
  readonly #channels = new Map<string | number, Channel>();
  #current: Channel | null = null;

  constructor(guard: AnswerGuard | null) {
    this.#guard = guard;
    this.logprobs = new LogprobQueue(guard);
  }

  /** Takes a piece and gives what may leave, in order. */
  push(piece: OtherPiece): readonly OtherPiece[] {
    const channel = this.#channelOf(piece);
    const before = this.#turnTo(channel);
    const text = piece.kind === 'tool-call' ? piece.arguments : piece.text;
    const leaving = channel.guard === null ? text : channel.guard.push(text);
    if (piece.kind === 'tool-call' && (piece.id !== null || piece.name !== null)) {
      this.#guard?.word('the id of a tool call', piece.id ?? '');
      this.#guard?.word('the name of a tool call', piece.name ?? '');
      return [...before, { ...piece, arguments: leaving }];
    }
    return leaving === '' ? before : [...before, channel.as(leaving)];
  }

  /** What is still held back, where content follows, or nothing more. */
  flush(): readonly OtherPiece[] {
    return this.#turnTo(null);
  }

  #turnTo(channel: Channel | null): readonly OtherPiece[] {
    const left = this.#current;
    if (left === channel) return NOTHING;
    this.#current = channel;
    const rest = left?.guard?.flush() ?? '';
    return rest === '' ? NOTHING : [left!.as(rest)];
  }

  #channelOf(piece: OtherPiece): Channel {
    const key = piece.kind === 'tool-call' ? piece.index : piece.kind;
    const known = this.#channels.get(key);
    if (known !== undefined) return known;
    const channel = this.#open(piece);
    this.#channels.set(key, channel);
    return channel;
  }

  #open(piece: OtherPiece): Channel {
    if (piece.kind !== 'tool-call') {
      const { kind } = piece;
      return { guard: this.#guard?.channel(kind) ?? null, as: (text) => ({ kind, text }) };
    }
    const none = { kind: piece.kind, index: piece.index, id: null, name: null };
    const guard = this.#guard?.channel('the arguments of a tool call') ?? null;
    return { guard, as: (text) => ({ ...none, arguments: text }) };
  }
}
