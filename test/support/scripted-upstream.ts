/** An upstream that plays what a test wrote for it, whatever that is: for all that no honest engine would say. */
import { byteCodec } from './byte-codec.js';
import type {
  Capacity,
  Prompt,
  Upstream,
  UpstreamFeature,
  UpstreamRequest,
  UpstreamSink,
} from '../../src/upstream/upstream.js';

/** Called for each request, in a turn of its own. Must end and release it. */
export type Script = (sink: UpstreamSink, request: UpstreamRequest) => void;

export interface ScriptedUpstream extends Upstream {
  script: Script;
  readonly requests: UpstreamRequest[];
  aborts: number;
}

const CAPACITY: Capacity = { nodes: [], context: 4096, prefillPool: 4096, decodePool: 8192, pageTokens: 16 };

export const ALL_FEATURES: ReadonlySet<UpstreamFeature> = new Set([
  'sampling',
  'tools',
  'response-format',
  'logprobs',
  'reasoning',
  'data-parts',
]);

export function scriptedUpstream(script: Script, features: ReadonlySet<UpstreamFeature> = new Set()): ScriptedUpstream {
  const render = (prompt: Prompt): string =>
    prompt.kind === 'text' ? prompt.text : byteCodec.renderChat(prompt.messages);
  const upstream: ScriptedUpstream = {
    script,
    requests: [],
    aborts: 0,
    describe: () => ({ kind: 'scripted', models: ['lab'], runningMax: 8, features }),
    capacity: () => CAPACITY,
    health: () => ({ isUp: true }),
    count: (prompt) => ({ kind: 'exact', tokens: byteCodec.countTokens(render(prompt)) }),
    start: (request, sink) => {
      upstream.requests.push(request);
      queueMicrotask(() => upstream.script(sink, request));
      return {
        abort: () => {
          upstream.aborts++;
        },
        acknowledge() {},
      };
    },
    selfTest: () => Promise.resolve(null),
    close: () => Promise.resolve(),
  };
  return upstream;
}
