/** A server that answers as llama-server does with its adapter in front, at times that tests can wait for. */
import { SystemClock } from '../../src/base/clock.js';
import { type LlamaOptions, LlamaUpstream } from '../../src/upstream/llamacpp/adapter.js';
import type { UpstreamNotice } from '../../src/upstream/notice.js';
import { LlamaDouble, type LlamaDoubleOptions } from './llama-double.js';

export const clock: SystemClock = new SystemClock();
const open: { close(): Promise<void> }[] = [];

export const closeAll = (): Promise<unknown> => Promise.all(open.map((each) => each.close()));

export const until = async (test: () => boolean): Promise<void> => {
  while (!test()) await new Promise((resolve) => clock.after(3, () => resolve(null)));
};
export const text = (length: number, letter = 'a'): { readonly kind: 'text'; readonly text: string } => ({
  kind: 'text',
  text: letter.repeat(length),
});

export interface Served {
  readonly server: LlamaDouble;
  readonly upstream: LlamaUpstream;
  readonly notices: readonly UpstreamNotice[];
  /** Waits for the first notice of this kind. */
  readonly notice: (kind: string) => Promise<UpstreamNotice>;
  readonly url: string;
}

/** A server, and its adapter, which has read it once. `prepare` is called before. */
export async function served(
  options: LlamaDoubleOptions = {},
  more: Partial<LlamaOptions> = {},
  prepare?: (server: LlamaDouble) => void,
): Promise<Served> {
  const server = new LlamaDouble(options);
  prepare?.(server);
  const notices: UpstreamNotice[] = [];
  const url = await server.listen();
  const upstream = await LlamaUpstream.open({
    url: new URL(url),
    key: null,
    models: ['lab'],
    clock,
    everyMs: 20,
    retryMs: 20,
    settleMs: 50,
    unseenMs: 100,
    onNotice: (notice) => notices.push(notice),
    ...more,
  });
  open.push(upstream, server);
  const notice = async (kind: string): Promise<UpstreamNotice> => {
    await until(() => notices.some((each) => each.kind === kind));
    return notices.find((each) => each.kind === kind)!;
  };
  return { server, upstream, notices, notice, url };
}
