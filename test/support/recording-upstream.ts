/** An upstream that keeps what the gateway gave it, and passes everything on to another. */
import type { Upstream, UpstreamRequest } from '../../src/upstream/upstream.js';

export interface RecordingUpstream extends Upstream {
  readonly requests: UpstreamRequest[];
}

export function recordingUpstream(inner: Upstream): RecordingUpstream {
  const requests: UpstreamRequest[] = [];
  return {
    requests,
    describe: () => inner.describe(),
    capacity: () => inner.capacity(),
    health: () => inner.health(),
    count: (prompt) => inner.count(prompt),
    start: (request, sink) => {
      requests.push(request);
      return inner.start(request, sink);
    },
    selfTest: (signal) => inner.selfTest(signal),
    close: () => inner.close(),
  };
}
