import type { TokenLogprob } from '../../upstream/upstream.js';
import type { AnswerGuard } from './answer-guard.js';
import type { ChannelGuard } from './channel.js';

interface Waiting {
  readonly logprob: TokenLogprob;
  /** Characters of content up to the end of the token's piece. */
  readonly contentEnd: number;
  /** By rank: characters of its channel up to the end of this place. */
  readonly ends: readonly number[];
}

interface Rank {
  readonly channel: ChannelGuard;
  came: number;
}

/**
 * The probabilities of an answer on their way out. The chosen tokens in a row are a text, and so are the likeliest ones, the second
 * likeliest ones, and so on: each goes through a guard of its own. A token's entry leaves when its content has, and all its ranks may.
 */
export class LogprobQueue {
  readonly #guard: AnswerGuard | null;
  readonly #ranks: Rank[] = [];
  readonly #waiting: Waiting[] = [];
  #contentCame = 0;

  /** Null: no marker is live. */
  constructor(guard: AnswerGuard | null) {
    this.#guard = guard;
  }

  /** Takes those of a piece of content with so many characters; none, for a piece without. */
  push(logprobs: readonly TokenLogprob[], characters: number): void {
    this.#contentCame += characters;
    for (const logprob of logprobs) {
      this.#scan(0, logprob.token);
      for (let rank = 1; rank <= logprob.top.length; rank++) this.#scan(rank, logprob.top[rank - 1]!.token);
      this.#waiting.push({ logprob, contentEnd: this.#contentCame, ends: this.#ranks.map(({ came }) => came) });
    }
  }

  /** Gives those that may leave once so many characters of content have left. `isLast`: no more comes, so no stretch is open. */
  take(contentLeft: number, isLast: boolean): readonly TokenLogprob[] {
    let ready = 0;
    while (ready < this.#waiting.length && this.#isReady(this.#waiting[ready]!, contentLeft, isLast)) ready++;
    return this.#waiting.splice(0, ready).map(({ logprob }) => logprob);
  }

  #isReady({ contentEnd, ends }: Waiting, contentLeft: number, isLast: boolean): boolean {
    if (contentEnd > contentLeft) return false;
    return isLast || ends.every((end, rank) => this.#ranks[rank]!.channel.released >= end);
  }

  #scan(rank: number, token: string): void {
    if (this.#guard === null) return;
    this.#ranks[rank] ??= { channel: this.#guard.channel('the probabilities'), came: 0 };
    const known = this.#ranks[rank];
    known.came += token.length;
    known.channel.push(token);
  }
}
