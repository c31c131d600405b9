import type { Prompt } from '../../upstream/upstream.js';
import { ChannelGuard, type Foreign, type HoldBack, type MarkerSource } from './channel.js';
import { Requester } from './requester.js';

/**
 * All channels of one answer: content, reasoning, refusal, the arguments of each call, the tokens of the probabilities. Each has its own
 * scanner and its own hold-back. A stretch that is split over two channels is not recognised.
 */
export class AnswerGuard {
  /** The channel that every answer has. */
  readonly content: ChannelGuard;
  readonly #markers: MarkerSource;
  readonly #requester: Requester;
  readonly #holdBack: HoldBack;
  #wordFound: Foreign | null = null;
  readonly #others: ChannelGuard[] = [];

  constructor(markers: MarkerSource, owner: string, prompt: Prompt, holdBack: HoldBack) {
    this.#markers = markers;
    this.#requester = new Requester(owner, prompt);
    this.#holdBack = holdBack;
    this.content = this.#open('content');
  }

  /** What proves that the answer is not the request's own; nothing leaves from then on, on any channel. */
  get foreign(): Foreign | null {
    if (this.content.foreign !== null) return this.content.foreign;
    if (this.#wordFound !== null) return this.#wordFound;
    return this.#others.find(({ foreign }) => foreign !== null)?.foreign ?? null;
  }

  /** A further channel, by the name that findings give it. */
  channel(name: string): ChannelGuard {
    const channel = this.#open(name);
    this.#others.push(channel);
    return channel;
  }

  /** A word that comes whole, such as the name of a call. */
  word(name: string, text: string): void {
    const channel = this.#open(name);
    channel.push(text);
    this.#wordFound ??= channel.foreign;
  }

  #open(name: string): ChannelGuard {
    return new ChannelGuard(this.#markers, this.#requester, name, this.#holdBack);
  }
}
