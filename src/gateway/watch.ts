import type { Clock, Timer } from '../base/clock.js';
import type { Prompt, Upstream } from '../upstream/upstream.js';
import { PATROL_EVERY_MS, PATROL_PROMPT_TOKENS } from './bounds.js';
import { backFinding, type FindingSink, outFinding } from './findings.js';
import type { LiveMarkers } from './live-markers.js';
import { Rotation } from './rotation.js';
import type { EngineSafety } from './safety-metrics.js';
import { Sentinels } from './sentinel.js';
import type { WaitingRoom } from './waiting.js';

export interface WatchOptions {
  readonly clock: Clock;
  readonly upstream: Upstream;
  readonly room: WaitingRoom;
  readonly findings: FindingSink;
  readonly metrics: EngineSafety;
  /** Of all engines together: what one engine was told may turn up at another that shares a cache with it. */
  readonly markers: LiveMarkers;
  /** Off: suspicion ends its own request and nothing else happens. */
  readonly sentinels: boolean;
  /** Between sentinels that nobody's suspicion asked for, while there is traffic; 0: none. @default PATROL_EVERY_MS */
  readonly sentinelEveryMs?: number;
  /** The engine has left rotation: everything that runs on it or waits for it is to end. */
  readonly onOut: () => void;
}

/** One upstream under watch: its live markers, its sentinels and whether it is in rotation. */
export class Watch {
  readonly markers: LiveMarkers;
  readonly rotation: Rotation;
  readonly #clock: Clock;
  readonly #sentinels: Sentinels;
  readonly #sends: boolean;
  readonly #patrolMs: number;
  #patrol: Timer | null = null;
  #isClosed = false;

  constructor(options: WatchOptions) {
    const { clock, findings, metrics, markers } = options;
    this.#clock = clock;
    this.#sends = options.sentinels;
    this.#patrolMs = options.sentinels ? (options.sentinelEveryMs ?? PATROL_EVERY_MS) : 0;
    this.markers = markers;
    this.#sentinels = new Sentinels(options);
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

  /**
   * The connection of one request failed before an answer began. A short sentinel shows whether the engine does that to everybody:
   * what one tenant's prompts do to their own connections takes no engine from another.
   */
  suspectTransport(): void {
    this.suspect(1);
  }

  prove(promptTokens: number): void {
    if (this.#sends) this.rotation.prove(promptTokens);
  }

  /** A tenant's request goes to the engine. Sentinels go the way that tenants' requests go, and only while some do. */
  passes(kind: Prompt['kind']): void {
    this.#sentinels.kind = kind;
    if (this.#patrolMs === 0 || this.#patrol !== null || this.#isClosed) return;
    this.#patrol = this.#clock.after(this.#patrolMs, () => {
      this.#patrol = null;
      this.rotation.patrol(PATROL_PROMPT_TOKENS);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#patrol?.cancel();
    this.rotation.close();
    this.#sentinels.close();
  }
}
