/** Fills the operators' page from what serves. */
import type { Clock } from '../base/clock.js';
import { ERROR_TABLE } from '../base/errors.js';
import { buildPage } from '../dashboard/page.js';
import { findingsPart, stateJson, tenantsPart } from '../dashboard/public-state.js';
import type { CapacityPart, ChecksPart, DashboardState, PoolRow, RefusalRow } from '../dashboard/state.js';
import type { FindingLog } from '../findings/finding-log.js';
import type { GatewayNumbers } from '../gateway/metrics.js';
import type { OperatorsPage } from '../gateway/operators.js';
import type { Gateway } from '../gateway/server.js';
import { effectiveLimit } from '../handoff/admission.js';
import { ALL_GUARDS, type GuardBits, guardsOf } from '../handoff/guards.js';
import type { EngineStats, PageCounts } from '../handoff/engine-port.js';
import type { Capacity } from '../upstream/upstream.js';

export interface PageSources {
  readonly gateway: Pick<Gateway, 'metrics' | 'accounts' | 'engines' | 'models' | 'room' | 'shield'>;
  readonly findings: Pick<FindingLog, 'list'>;
  readonly clock: Clock;
  readonly guards: GuardBits;
  /** Names. */
  readonly faults: readonly string[];
  /** The embedded engine's own numbers; absent for other engines. */
  readonly stats?: () => EngineStats;
}

/** The page, and its numbers at every call of `state`. */
export function operatorsPage(sources: PageSources): OperatorsPage {
  const startedMs = sources.clock.wallMs();
  return { ...buildPage(), state: async () => stateJson(await readState(sources, startedMs)) };
}

async function readState(sources: PageSources, startedMs: number): Promise<DashboardState> {
  const { gateway, guards, clock } = sources;
  const { engines } = gateway;
  const stats = sources.stats?.() ?? null;
  const numbers = await gateway.metrics.numbers();
  const kinds = new Set(engines.map(({ upstream }) => upstream.describe().kind));
  const refusals = refusalRows(numbers);
  const stopped = new Map(numbers.guardHits.map(({ guard, count }) => [guard, count]));
  return {
    atMs: clock.wallMs(),
    startedMs,
    engine: { kind: [...kinds].join(', '), models: gateway.models },
    guardsOff: guardsOf(ALL_GUARDS & ~guards),
    faults: sources.faults,
    capacity: capacityPart(engines),
    requests: {
      running: gateway.room.running,
      runningMax: engines.reduce((sum, { upstream }) => sum + upstream.describe().runningMax, 0),
      waiting: gateway.room.waiting,
      admitted: numbers.admitted,
      clamped: numbers.clamped,
      refused: refusals.reduce((total, { count }) => total + count, 0),
      shielded: gateway.metrics.safety.shieldedCount + gateway.shield.open,
    },
    tenants: tenantsPart(
      gateway.accounts.map(({ tenant, running, waiting, leasedTokens, drainingTokens }) => ({
        name: tenant.name,
        running,
        waiting,
        leased: leasedTokens,
        draining: drainingTokens,
        cached: cachedTokens(stats, tenant.number, engines[0]!.upstream.capacity().pageTokens),
      })),
    ),
    pools: stats === null ? [] : [poolRow('prefill', stats.prefillPages), poolRow('decode', stats.decodePages)],
    refusals,
    guards: guardsOf(ALL_GUARDS).map((guard) => ({
      guard,
      on: guardsOf(guards).includes(guard),
      stopped: stopped.get(guard) ?? 0,
    })),
    checks: stats === null ? null : checksPart(stats),
    latency: { ttft: numbers.ttft, total: numbers.total },
    findings: findingsPart(sources.findings.list()),
  };
}

/** Tokens of the decode pool in sealed pages of one tenant. */
function cachedTokens(stats: EngineStats | null, tenant: number, pageTokens: number): number | null {
  const sealed = stats?.sealedByTenant;
  return sealed === undefined ? null : (sealed.get(tenant) ?? 0) * pageTokens;
}

/** The numbers of the engine with the smallest limit, and the nodes of all of them. */
function capacityPart(engines: Gateway['engines']): CapacityPart {
  const capacities = engines.map(({ upstream }) => upstream.capacity());
  const tokensOf = (capacity: Capacity): number => effectiveLimit(capacity)?.tokens ?? Number.POSITIVE_INFINITY;
  const least = capacities.reduce((best, each) => (tokensOf(each) < tokensOf(best) ? each : best));
  const { context, prefillPool, decodePool, pageTokens } = least;
  const nodes = engines.flatMap(({ name }, index) =>
    capacities[index]!.nodes.map(({ atMs: _at, ...node }) =>
      engines.length === 1 ? node : { ...node, node: `${name}: ${node.node}` },
    ),
  );
  return { context, prefillPool, decodePool, pageTokens, limit: effectiveLimit(least), nodes };
}

function refusalRows({ refusals }: GatewayNumbers): RefusalRow[] {
  return refusals
    .filter(({ count }) => count > 0)
    .map(({ reason, count }) => ({ reason, status: ERROR_TABLE[reason].status, count }))
    .sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1));
}

function checksPart({ pagesVerified, tagsChecked, landingsRefused }: EngineStats): ChecksPart {
  return { pagesVerified, tagsChecked, landingsRefused };
}

function poolRow(role: string, { total, free, leased, draining, sealed }: PageCounts): PoolRow {
  return { role, total, free, leased, draining, sealed };
}
