/** A gateway over the embedded engine in its threads, inside the test's own process, so that both can be looked at. */
import { SystemClock } from '../../src/base/clock.js';
import { type EngineOptions, engineConfig } from '../../src/engine/config.js';
import { ThreadedEngine } from '../../src/engine/threaded-engine.js';
import { countTokens, encode, renderChat, TokenDecoder } from '../../src/tokenizer/bytes.js';
import { EmbeddedUpstream } from '../../src/upstream/embedded/adapter.js';
import type { Capacity, Upstream } from '../../src/upstream/upstream.js';
import { type Harness, type HarnessOptions, startHarness } from './gateway-harness.js';
import { recordingUpstream, type RecordingUpstream } from './recording-upstream.js';

export interface RealGateway extends Harness {
  readonly requests: RecordingUpstream['requests'];
  /** What the engine is said to hold; null: what it says. */
  claimed: Partial<Capacity> | null;
}

export async function startRealGateway(engine: EngineOptions, options: HarnessOptions = {}): Promise<RealGateway> {
  const clock = new SystemClock();
  const threaded = await ThreadedEngine.start({ config: engineConfig(engine), clock });
  const codec = { encode, countTokens, renderChat, newDecoder: () => new TokenDecoder() };
  const inner = recordingUpstream(new EmbeddedUpstream({ engine: threaded, clock, codec, selfTestTenant: 255 }));
  let claimed: Partial<Capacity> | null = null;
  const upstream: Upstream = { ...inner, capacity: () => ({ ...inner.capacity(), ...claimed }) };
  const harness = await startHarness({
    upstream,
    stats: () => threaded.stats(),
    temperatureDefault: 0,
    ...options,
  });
  return {
    ...harness,
    requests: inner.requests,
    get claimed() {
      return claimed;
    },
    set claimed(value) {
      claimed = value;
    },
    close: async () => {
      await harness.close();
      await threaded.close();
    },
  };
}
