import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import type { Marker } from '../markers/marker.js';
import type { Upstream } from '../upstream/upstream.js';
import { RETRY_AFTER_S } from './bounds.js';
import { backFinding, type FindingSink, outFinding } from './findings.js';
import { LiveMarkers } from './live-markers.js';
import { Rotation } from './rotation.js';
import type { SafetyMetrics } from './safety-metrics.js';
import { Sentinels } from './sentinel.js';
import type { WaitingRoom } from './waiting.js';

export interface WatchOptions {
  readonly clock: Clock;
  readonly upstream: Upstream;
  readonly room: WaitingRoom;
  readonly findings: FindingSink;
  readonly metrics: SafetyMetrics;
  /** Live markers of tenants; the owner of each is a tenant's name. */
  readonly markers: readonly Marker[];
  /** Off: suspicion ends its own request and nothing else happens. */
  readonly sentinels: boolean;
  /** The engine has left rotation: everything that runs on it or waits for it is to end. */
  readonly onOut: () => void;
}

/** One upstream under watch: its live markers, its sentinels and whether it is in rotation. */
export class Watch {
  readonly markers: LiveMarkers;
  readonly rotation: Rotation;
  readonly #sentinels: Sentinels;
  readonly #sends: boolean;

  constructor(options: WatchOptions) {
    const { clock, findings, metrics } = options;
    this.#sends = options.sentinels;
    this.markers = new LiveMarkers(options.markers);
    this.#sentinels = new Sentinels({ ...options, markers: this.markers });
    this.rotation = new Rotation({
      clock,
      sentinel: (promptTokens) => this.#sentinels.send(promptTokens),
      onSentinel: (outcome) => metrics.sentinel(outcome),
      onOut: (reason) => {
        metrics.out(reason);
        findings.raise(outFinding(reason));
        options.onOut();
      },
      onBack: () => {
        metrics.back();
        findings.raise(backFinding());
      },
    });
  }

  suspect(promptTokens: number): void {
    if (this.#sends) this.rotation.suspect(promptTokens);
  }

  prove(promptTokens: number): void {
    if (this.#sends) this.rotation.prove(promptTokens);
  }

  close(): void {
    this.rotation.close();
    this.#sentinels.close();
  }
}

export function engineOut(): CodedError {
  return new CodedError(
    'engine_unavailable',
    'The engine is out of rotation until a self-test has passed; send the request again later.',
    { retryAfterS: RETRY_AFTER_S },
  );
}
