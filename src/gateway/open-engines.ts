/** The engines of a gateway, made of its upstreams. */
import { assert } from '../base/assert.js';
import { CodedError } from '../base/errors.js';
import type { Marker } from '../markers/marker.js';
import type { Upstream } from '../upstream/upstream.js';
import { Engine, requestTokensMax } from './engine.js';
import { findingsOf } from './findings.js';
import type { HoldBack } from './guard/channel.js';
import { LiveMarkers } from './live-markers.js';
import type { RelayContext } from './relay-context.js';
import { WaitingRoom, type WaitingOptions } from './waiting.js';
import { Watch, type WatchOptions } from './watch.js';

export interface EnginesOptions
  extends Pick<RelayContext, 'clock' | 'findings' | 'guards' | 'metrics' | 'shield'>,
    Pick<WaitingOptions, 'strideOf' | 'tenantOpenMax' | 'waitingMax' | 'waitMsMax'>,
    Pick<WatchOptions, 'sentinelEveryMs'> {
  readonly upstreams: readonly Upstream[];
  readonly engineNames?: readonly string[];
  readonly markers?: readonly Marker[];
  readonly holdBack?: HoldBack;
  /** @default true */
  readonly sentinels?: boolean;
  readonly tenantCount: number;
  /** The engine has left rotation. */
  readonly onOut: (engine: Engine) => void;
}

/** One for each upstream, in their order. Throws CodedError `usage` where two have one name, or there is none. */
export function openEngines(options: EnginesOptions): readonly Engine[] {
  const { upstreams } = options;
  const names = options.engineNames ?? upstreams.map((_, index) => `engine-${index + 1}`);
  if (upstreams.length === 0 || names.length !== upstreams.length || new Set(names).size !== names.length) {
    const got = `${upstreams.length} with the names ${names.join(', ')}`;
    throw new CodedError('usage', `Expected at least one upstream, and for each a name of its own, got ${got}.`);
  }
  const markers = new LiveMarkers(options.markers, options.holdBack);
  return upstreams.map((upstream, index) => openEngine(options, upstream, names[index]!, markers));
}

function openEngine(options: EnginesOptions, upstream: Upstream, name: string, markers: LiveMarkers): Engine {
  const { clock, guards, metrics, shield, sentinelEveryMs } = options;
  const room = newRoom(options, upstream);
  const findings = findingsOf(name, options.findings);
  const safety = metrics.safety.of(name);
  let engine: Engine | null = null;
  const watch = new Watch({
    clock,
    upstream,
    room,
    findings,
    metrics: safety,
    markers,
    sentinels: options.sentinels ?? true,
    ...(sentinelEveryMs === undefined ? {} : { sentinelEveryMs }),
    onOut: () => {
      assert(engine !== null, 'an engine leaves rotation after it was made');
      options.onOut(engine);
    },
  });
  engine = new Engine(name, room, { upstream, watch, shield, guards, metrics, safety, findings, clock });
  return engine;
}

function newRoom(options: EnginesOptions, upstream: Upstream): WaitingRoom {
  const { clock, tenantCount, strideOf, tenantOpenMax, waitingMax, waitMsMax } = options;
  return new WaitingRoom({
    clock,
    tenants: tenantCount,
    size: () => {
      const capacity = upstream.capacity();
      return {
        runningMax: upstream.describe().runningMax,
        poolTokens: capacity.decodePool,
        pageTokens: capacity.pageTokens,
        requestTokensMax: requestTokensMax(upstream),
      };
    },
    ...(strideOf === undefined ? {} : { strideOf }),
    ...(tenantOpenMax === undefined ? {} : { tenantOpenMax }),
    ...(waitingMax === undefined ? {} : { waitingMax }),
    ...(waitMsMax === undefined ? {} : { waitMsMax }),
  });
}
