/** The embedded engine in SGLang's dialect, as one node or as a pair, and the adapters in front of it. */
import { type Clock, SystemClock } from '../../src/base/clock.js';
import type { EngineOptions } from '../../src/engine/config.js';
import type { EngineServerOptions } from '../../src/engine/http/server.js';
import { Served } from '../../src/engine/http/harness.test.help.js';
import { countTokens, renderChat } from '../../src/tokenizer/bytes.js';
import type { UpstreamNotice } from '../../src/upstream/notice.js';
import { SglangNode, type SglangNodeOptions } from '../../src/upstream/sglang/node.js';
import { SglangPairUpstream } from '../../src/upstream/sglang/pair.js';
import { SglangUpstream, type SglangOptions } from '../../src/upstream/sglang/single.js';
import type { Prompt, PromptCount } from '../../src/upstream/upstream.js';

/** As the embedded engine counts: bytes, and its template. */
export function byteCount(prompt: Prompt): PromptCount {
  const text =
    prompt.kind === 'text' ? prompt.text : renderChat(prompt.messages as { role: string; content: string }[]);
  return { kind: 'exact', tokens: countTokens(text) };
}

export interface NodeMaking {
  readonly clock: Clock;
  readonly notices: UpstreamNotice[];
  readonly node: (url: string, more?: Partial<SglangNodeOptions>) => SglangNode;
  readonly options: (more?: Partial<SglangOptions>) => SglangOptions;
}

export function nodeMaking(clock: Clock = new SystemClock()): NodeMaking {
  const notices: UpstreamNotice[] = [];
  const onNotice = (notice: UpstreamNotice): void => void notices.push(notice);
  return {
    clock,
    notices,
    node: (url, more = {}) => new SglangNode({ url: new URL(url), key: null, clock, onNotice, ...more }),
    options: (more = {}) => ({ clock, onNotice, count: byteCount, ...more }),
  };
}

export interface Double<U> {
  readonly served: Served;
  readonly upstream: U;
  readonly notices: readonly UpstreamNotice[];
  /** The engine; the upstream is closed by whoever got it. */
  close(): Promise<void>;
}

export async function singleDouble(
  engine: EngineOptions = {},
  more: Partial<SglangOptions> = {},
): Promise<Double<SglangUpstream>> {
  const served = await Served.start('single', engine);
  const { node, options, notices } = nodeMaking();
  const upstream = await SglangUpstream.open(node(served.urls.single!), options(more));
  return { served, upstream, notices, close: () => served.close() };
}

export async function pairDouble(
  engine: EngineOptions = {},
  http: Partial<EngineServerOptions> = {},
): Promise<Double<SglangPairUpstream>> {
  const served = await Served.start('pair', engine, http);
  const { upstream, notices } = await pairOver(served);
  return { served, upstream, notices, close: () => served.close() };
}

/** One more adapter in front of a pair that runs. */
export async function pairOver(
  served: Served,
  more: Partial<SglangOptions> = {},
): Promise<Pick<Double<SglangPairUpstream>, 'upstream' | 'notices'>> {
  const { node, options, notices } = nodeMaking();
  const prefills = [node(served.urls.prefill!)];
  return { upstream: await SglangPairUpstream.open(node(served.urls.decode!), prefills, options(more)), notices };
}
