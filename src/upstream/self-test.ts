import { freshId } from '../wire/index.js';
import type { Upstream, UpstreamRequest } from './upstream.js';

const IN_TIME = 'the engine did not answer in time';

/** One token through the whole path of `upstream`, by way of `start`; resolves with what went wrong, or null. */
export function selfTestOf(upstream: Pick<Upstream, 'start'>, signal: AbortSignal): Promise<string | null> {
  const request: UpstreamRequest = {
    id: freshId(),
    traceparent: `00-${freshId()}-${freshId().slice(16)}-00`,
    prompt: { kind: 'text', text: 'ping' },
    maxTokens: 1,
    temperature: 0,
    seed: 0,
    tenant: 1,
    salt: '',
    engineFields: {},
    streamed: false,
  };
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(IN_TIME);
    const run = upstream.start(request, {
      started() {},
      text() {},
      piece() {},
      end: (end) => {
        signal.removeEventListener('abort', onAbort);
        if (end.kind === 'finished')
          resolve(end.usage.completionTokens === 1 ? null : 'the engine did not count one token');
        else resolve(end.kind === 'failed' ? end.detail : IN_TIME);
      },
      released() {},
    });
    const onAbort = (): void => run.abort();
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
