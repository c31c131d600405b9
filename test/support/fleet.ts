/** Several engines that a test plays by hand behind one gateway. */
import { assert } from '../../src/base/assert.js';
import type {
  Capacity,
  PromptCount,
  UpstreamHealth,
  UpstreamRequest,
  UpstreamSink,
} from '../../src/upstream/upstream.js';
import { type ScriptedUpstream, scriptedUpstream } from './scripted-upstream.js';

export interface Played extends ScriptedUpstream {
  /** What it says of itself from now on. */
  said: { capacity: Partial<Capacity>; models: readonly string[]; runningMax: number; health: UpstreamHealth };
  /** Requests that it has begun and not ended, oldest first. */
  readonly open: { readonly sink: UpstreamSink; readonly request: UpstreamRequest }[];
  /** Ends the oldest one well, with so many tokens of text. */
  finish(tokens?: number): void;
}

export interface PlayedOptions {
  readonly capacity?: Partial<Capacity>;
  readonly models?: readonly string[];
  readonly runningMax?: number;
  /** Ends every request well at once. @default false */
  readonly isPrompt?: boolean;
}

/** Counts as the byte codec does. */
export function playedEngine(options: PlayedOptions = {}): Played {
  const open: Played['open'] = [];
  const base = scriptedUpstream((sink, request) => {
    open.push({ sink, request });
    if (options.isPrompt === true) played.finish();
  });
  const describe = base.describe.bind(base);
  const capacity = base.capacity.bind(base);
  const plainCount = base.count.bind(base);
  const said: Played['said'] = {
    capacity: options.capacity ?? {},
    models: options.models ?? ['lab'],
    runningMax: options.runningMax ?? 8,
    health: { isUp: true },
  };
  const played: Played = Object.assign(base, {
    said,
    open,
    describe: () => ({ ...describe(), models: said.models, runningMax: said.runningMax }),
    capacity: () => ({ ...capacity(), ...said.capacity }),
    health: () => said.health,
    finish: (tokens = 1) => {
      const { sink, request } = open.shift()!;
      const count = base.count(request.prompt);
      const promptTokens = tokensOf(count.kind === 'exact' ? count : plainCount(request.prompt));
      const counts = { promptTokens, prefillTokens: promptTokens };
      sink.started(counts);
      for (let i = 0; i < tokens; i++) sink.text('y', 1);
      sink.end({
        kind: 'finished',
        finishReason: 'stop',
        usage: { ...counts, completionTokens: tokens, cachedTokens: null },
      });
      sink.released();
    },
  });
  return played;
}

function tokensOf(count: PromptCount): number {
  assert(count.kind === 'exact', 'the byte codec counts exactly');
  return count.tokens;
}
