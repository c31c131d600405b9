import type { UpstreamEnd, UpstreamRun, UpstreamSink } from '../upstream.js';
import type { SlotLease } from './slots.js';

/** What a run needs of its upstream. */
export interface RunPorts {
  readonly begin: (lease: SlotLease, sink: UpstreamSink) => UpstreamRun;
  readonly mayReuse: (lease: SlotLease) => boolean;
  readonly over: (end: UpstreamEnd) => void;
  readonly finished: (slot: number) => void;
  readonly cutShort: (slot: number, hadAnswer: boolean, onLeft: () => void) => void;
}

/** One request: it waits for a slot, runs in it, and is released when the slot is left. */
export class LlamaRun implements UpstreamRun {
  readonly #sink: UpstreamSink;
  readonly #ports: RunPorts;
  #inner: UpstreamRun | null = null;
  #ended: UpstreamEnd | null = null;
  #hadAnswer = false;
  #isOver = false;
  onGivenUp: () => void = () => {};

  constructor(sink: UpstreamSink, ports: RunPorts) {
    this.#sink = sink;
    this.#ports = ports;
  }

  take(lease: SlotLease): void {
    const inner = this.#ports.begin(lease, {
      started: (counts) => this.#sink.started(counts),
      text: (piece, tokens) => {
        this.#hadAnswer = true;
        this.#sink.text(piece, tokens);
      },
      piece: (piece, tokens) => {
        this.#hadAnswer = true;
        this.#sink.piece(piece, tokens);
      },
      end: (end) => {
        const judged = judgeCached(end, this.#ports.mayReuse(lease));
        this.#ended = end;
        this.#ports.over(judged);
        this.#sink.end(judged);
      },
      released: () => this.#leave(lease.slot),
    });
    this.#inner = inner;
  }

  abort(): void {
    if (this.#inner !== null) return this.#inner.abort();
    if (this.#isOver) return;
    this.#isOver = true;
    this.onGivenUp();
    this.#sink.end({ kind: 'aborted', usage: null });
    this.#sink.released();
  }

  acknowledge(tokens: number): void {
    this.#inner?.acknowledge(tokens);
  }

  #leave(slot: number): void {
    if (this.#ended?.kind === 'finished') {
      this.#ports.finished(slot);
      this.#sink.released();
    } else this.#ports.cutShort(slot, this.#hadAnswer, () => this.#sink.released());
  }
}

/** What came out of a cache stays here. Where nothing may come out of one, an engine that says so has shown another's prompt its way. */
function judgeCached(end: UpstreamEnd, mayReuse: boolean): UpstreamEnd {
  if (end.kind === 'failed' || end.usage === null) return end;
  const { cachedTokens } = end.usage;
  if (end.kind === 'finished' && !mayReuse && cachedTokens !== null && cachedTokens > 0) {
    return {
      kind: 'failed',
      code: 'verification_failed',
      message: 'The engine used what it had kept of an earlier request, so the answer was withheld.',
      detail: `${cachedTokens} tokens came out of the cache of a slot that was asked to use none`,
      guard: 'salt',
    };
  }
  return { ...end, usage: { ...end.usage, cachedTokens: null } };
}
