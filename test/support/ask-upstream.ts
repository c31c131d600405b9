/** One request at an upstream, heard to its release. */
import assert from 'node:assert/strict';
import type { Upstream, UpstreamEnd, UpstreamRequest, UpstreamRun } from '../../src/upstream/upstream.js';

export interface Heard {
  readonly end: UpstreamEnd;
  readonly text: string;
  readonly startedWith: readonly (number | null)[];
  /** Pieces that were no plain text. */
  readonly pieces: number;
}

export const TRACEPARENT: string = `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`;

/** `onRun` gets the run as soon as it is there, `onEnd` hears the end before the release. */
export function ask(
  upstream: Upstream,
  overrides: Partial<UpstreamRequest> = {},
  onRun?: (run: UpstreamRun) => void,
  onEnd?: () => void,
): Promise<Heard> {
  const request: UpstreamRequest = {
    id: 'a'.repeat(32),
    traceparent: TRACEPARENT,
    prompt: { kind: 'chat', messages: [{ role: 'user', content: 'hello' }] },
    maxTokens: 3,
    temperature: 0,
    seed: 7,
    tenant: 1,
    salt: 'aa',
    engineFields: {},
    ...overrides,
  };
  return new Promise((resolve) => {
    let text = '';
    let ended: UpstreamEnd | null = null;
    let tokens = 0;
    let pieces = 0;
    const startedWith: (number | null)[] = [];
    const run = upstream.start(request, {
      started: (counts) => startedWith.push(counts?.promptTokens ?? null),
      text: (piece, count) => {
        text += piece;
        tokens += count;
        run.acknowledge(tokens);
      },
      piece: (_, count) => {
        pieces++;
        tokens += count;
        run.acknowledge(tokens);
      },
      end: (end) => {
        assert.equal(ended, null, 'one end');
        ended = end;
        onEnd?.();
      },
      released: () => resolve({ end: ended!, text, startedWith, pieces }),
    });
    onRun?.(run);
  });
}
