import type { ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import { STREAM_STALL_MS_MAX } from './bounds.js';

/** Whoever reads a stream, at a pace of their own. One that takes nothing for STREAM_STALL_MS_MAX is given up. */
export class Reader {
  readonly #clock: Clock;
  readonly #response: ServerResponse;
  #isBehind = false;

  constructor(clock: Clock, response: ServerResponse) {
    this.#clock = clock;
    this.#response = response;
  }

  /** Whether what was written waits to be taken. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** `caughtUp` is called once the reader has taken what it was behind with. */
  write(text: string, caughtUp: () => void): void {
    const response = this.#response;
    if (response.write(text) || this.#isBehind) return;
    this.#isBehind = true;
    const stall = this.#clock.after(STREAM_STALL_MS_MAX, () => response.destroy());
    const onDrain = (): void => {
      stall.cancel();
      response.off('close', onClose);
      this.#isBehind = false;
      caughtUp();
    };
    const onClose = (): void => {
      stall.cancel();
      response.off('drain', onDrain);
    };
    response.once('drain', onDrain).once('close', onClose);
  }

  /** A stream that has ended and is not being read holds its buffer for that long and no longer. */
  boundEnd(): void {
    const response = this.#response;
    if (!response.writableNeedDrain) return;
    const stall = this.#clock.after(STREAM_STALL_MS_MAX, () => response.destroy());
    response.once('close', () => stall.cancel());
  }
}
