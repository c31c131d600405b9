import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { ERROR_TABLE, type ErrorCode } from '../base/errors.js';
import { effectiveLimit } from '../handoff/admission.js';
import { GUARDS, type GuardName } from '../handoff/guards.js';
import type { EngineStats, PageCounts, SweepCounts } from '../handoff/engine-port.js';
import type { Capacity, NodeCapacity, Upstream } from '../upstream/upstream.js';
import { type LatencySummary, LatencyWindow } from './latency.js';
import { SafetyMetrics } from './safety-metrics.js';
import type { TenantAccount } from './waiting.js';

export interface MetricsSources {
  readonly engines: Iterable<{ readonly name: string; readonly upstream: Pick<Upstream, 'capacity'> }>;
  readonly accounts: Iterable<TenantAccount>;
  /** The embedded engine's own numbers; absent for other engines. */
  readonly stats?: () => EngineStats;
}

/** The gateway's own counts, for the operators' page: the same counters that `/metrics` prints. */
export interface GatewayNumbers {
  readonly admitted: number;
  readonly clamped: number;
  /** Every reason, most of them with 0. */
  readonly refusals: readonly { readonly reason: ErrorCode; readonly count: number }[];
  /** In the gateway and in the embedded engine. */
  readonly guardHits: readonly { readonly guard: GuardName; readonly count: number }[];
  readonly ttft: LatencySummary;
  readonly total: LatencySummary;
}

/** What decided over a prompt's length: a bound admitted it, a bound refused it, or the exact count was needed first. */
export type CountTier = 'bound_admitted' | 'bound_refused' | 'exact';

const TTFT_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const TOTAL_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const PAGE_STATES = ['free', 'leased', 'draining', 'sealed'] as const;

/**
 * The gateway's numbers for Prometheus. What changes with every request goes through children that are bound once (a label
 * look-up costs more than the increment); everything else is read when somebody asks.
 */
export class GatewayMetrics {
  readonly registry: Registry = new Registry();
  readonly safety: SafetyMetrics = new SafetyMetrics(this.registry);
  readonly #sources: MetricsSources;
  /** Admissions, clamped, refusals: what the children below count in. */
  readonly #counters: readonly Counter[];
  readonly #admissions: Counter.Internal;
  readonly #clamped: Counter.Internal;
  readonly #refusals: Readonly<Record<ErrorCode, Counter.Internal>>;
  readonly #tiers: Readonly<Record<CountTier, Counter.Internal>>;
  readonly #ttft: Histogram;
  readonly #total: Histogram;
  readonly #ttftWindow = new LatencyWindow();
  readonly #totalWindow = new LatencyWindow();
  readonly #ownGuardHits = new Map<GuardName, number>();

  constructor(sources: MetricsSources) {
    this.#sources = sources;
    const registers = [this.registry];
    const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
      new Counter({ name, help, labelNames, registers });
    const admissions = counter('cofferdam_admissions_total', 'Requests that were admitted');
    const clamped = counter('cofferdam_clamped_total', 'Admitted requests whose output was cut to the decode pool');
    const refusals = counter('cofferdam_refusals_total', 'Requests that ended with an error', ['reason']);
    this.#counters = [admissions, clamped, refusals];
    this.#admissions = admissions.labels();
    this.#clamped = clamped.labels();
    const codes = (Object.keys(ERROR_TABLE) as ErrorCode[]).filter((code) => ERROR_TABLE[code].status !== 0);
    this.#refusals = Object.fromEntries(codes.map((code) => [code, refusals.labels(code)])) as Readonly<
      Record<ErrorCode, Counter.Internal>
    >;
    const tiers = counter('cofferdam_count_decisions_total', 'Lengths decided, by what decided them', ['tier']);
    this.#tiers = {
      bound_admitted: tiers.labels('bound_admitted'),
      bound_refused: tiers.labels('bound_refused'),
      exact: tiers.labels('exact'),
    };
    this.#ttft = new Histogram({
      name: 'cofferdam_ttft_seconds',
      help: 'From the arrival of a request to its first text',
      buckets: TTFT_BUCKETS_S,
      registers,
    });
    this.#total = new Histogram({
      name: 'cofferdam_request_seconds',
      help: 'From the arrival of a request to the end of its answer',
      buckets: TOTAL_BUCKETS_S,
      registers,
    });
    capacityGauges(registers, sources);
    tenantGauges(registers, sources.accounts);
    engineGauges(registers, sources, this.#ownGuardHits);
  }

  admitted(clamped: boolean): void {
    this.#admissions.inc();
    if (clamped) this.#clamped.inc();
  }

  decided(tier: CountTier): void {
    this.#tiers[tier].inc();
  }

  refused(code: ErrorCode): void {
    this.#refusals[code].inc();
  }

  /** A guard of the gateway stopped something. */
  guardHit(guard: GuardName): void {
    this.#ownGuardHits.set(guard, (this.#ownGuardHits.get(guard) ?? 0) + 1);
  }

  firstText(ms: number): void {
    this.#ttft.observe(ms / 1000);
    this.#ttftWindow.add(ms);
  }

  answered(ms: number): void {
    this.#total.observe(ms / 1000);
    this.#totalWindow.add(ms);
  }

  async numbers(): Promise<GatewayNumbers> {
    const [admissions, clamped, refusals] = await Promise.all(this.#counters.map((counter) => counter.get()));
    return {
      admitted: admissions?.values[0]?.value ?? 0,
      clamped: clamped?.values[0]?.value ?? 0,
      refusals: (refusals?.values ?? []).map(({ labels, value }) => ({
        reason: labels.reason as ErrorCode,
        count: value,
      })),
      guardHits: allGuardHits(this.#ownGuardHits, this.#sources.stats?.()),
      ttft: this.#ttftWindow.summary(),
      total: this.#totalWindow.summary(),
    };
  }
}

function allGuardHits(
  own: ReadonlyMap<GuardName, number>,
  engine: EngineStats | undefined,
): GatewayNumbers['guardHits'] {
  return GUARDS.map((guard) => ({ guard, count: (own.get(guard) ?? 0) + (engine?.guardHits[guard] ?? 0) }));
}

function capacityGauges(registers: Registry[], sources: MetricsSources): void {
  const gauge = (name: string, help: string, value: (capacity: Capacity) => number | null): void => {
    new Gauge({
      name,
      help,
      labelNames: ['engine'],
      registers,
      collect() {
        this.reset();
        // Unknown is no number: NaN, never 0.
        for (const { name: engine, upstream } of sources.engines) {
          this.set({ engine }, value(upstream.capacity()) ?? Number.NaN);
        }
      },
    });
  };
  gauge('cofferdam_advertised_context_tokens', 'The configured context', (capacity) => capacity.context);
  gauge('cofferdam_prefill_pool_tokens', 'The pool of the prefill role', (capacity) => capacity.prefillPool);
  gauge('cofferdam_decode_pool_tokens', 'The pool of the decode role', (capacity) => capacity.decodePool);
  gauge(
    'cofferdam_effective_limit_tokens',
    'The largest prompt served with at least one token of output',
    (capacity) => effectiveLimit(capacity)?.tokens ?? null,
  );
  nodeGauges(registers, sources);
}

function nodeGauges(registers: Registry[], sources: MetricsSources): void {
  const gauge = (name: string, help: string, value: (node: NodeCapacity) => number | null): void => {
    new Gauge({
      name,
      help,
      labelNames: ['engine', 'node', 'role'],
      registers,
      collect() {
        // A node that is gone has no row.
        this.reset();
        for (const { name: engine, upstream } of sources.engines) {
          for (const each of upstream.capacity().nodes) {
            this.set({ engine, node: each.node, role: each.role }, value(each) ?? Number.NaN);
          }
        }
      },
    });
  };
  gauge('cofferdam_node_advertised_tokens', 'The context that a node advertises', (node) => node.advertised);
  gauge('cofferdam_node_pool_tokens', 'The pool of a node', (node) => node.pool);
  gauge('cofferdam_node_accept_limit_tokens', 'The prompt that a node itself accepts', (node) => node.acceptLimit);
}

function tenantGauges(registers: Registry[], accounts: Iterable<TenantAccount>): void {
  new Gauge({
    name: 'cofferdam_tenant_requests',
    help: 'Open requests of a tenant, by state',
    labelNames: ['tenant', 'state'],
    registers,
    collect() {
      // A tenant that is gone has no row.
      this.reset();
      for (const account of accounts) {
        this.set({ tenant: account.tenant.name, state: 'running' }, account.running);
        this.set({ tenant: account.tenant.name, state: 'waiting' }, account.waiting);
      }
    },
  });
  new Gauge({
    name: 'cofferdam_tenant_tokens',
    help: 'Tokens of the decode pool that a tenant holds, in whole pages, by state',
    labelNames: ['tenant', 'state'],
    registers,
    collect() {
      this.reset();
      for (const account of accounts) {
        this.set({ tenant: account.tenant.name, state: 'leased' }, account.leasedTokens);
        this.set({ tenant: account.tenant.name, state: 'draining' }, account.drainingTokens);
      }
    },
  });
}

function engineGauges(registers: Registry[], sources: MetricsSources, own: ReadonlyMap<GuardName, number>): void {
  const { stats } = sources;
  // Counters of others are read, not counted: a collected counter is set anew each time.
  new Counter({
    name: 'cofferdam_guard_hits_total',
    help: 'What each guard stopped, in the gateway and in the embedded engine',
    labelNames: ['guard'],
    registers,
    collect() {
      this.reset();
      for (const { guard, count } of allGuardHits(own, stats?.())) this.inc({ guard }, count);
    },
  });
  if (stats === undefined) return;
  new Gauge({
    name: 'cofferdam_pages',
    help: 'Pages of a pool, by state',
    labelNames: ['role', 'state'],
    registers,
    collect() {
      const { prefillPages, decodePages } = stats();
      const set = (role: string, pages: PageCounts): void => {
        for (const state of PAGE_STATES) this.set({ role, state }, pages[state]);
      };
      set('prefill', prefillPages);
      set('decode', decodePages);
    },
  });
  const counted = (name: string, help: string, value: (stats: EngineStats) => number): void => {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(value(stats()));
      },
    });
  };
  counted('cofferdam_pages_verified_total', 'Pages whose checksum was compared at commit', (all) => all.pagesVerified);
  counted('cofferdam_tags_checked_total', 'Tags compared by the read guard', (all) => all.tagsChecked);
  counted('cofferdam_landings_refused_total', 'Landings that met a revoked registration', (all) => all.landingsRefused);
  sweepCounters(registers, stats);
}

function sweepCounters(registers: Registry[], stats: () => EngineStats): void {
  const swept = (name: string, help: string, of: keyof SweepCounts): void => {
    new Counter({
      name,
      help,
      labelNames: ['role'],
      registers,
      collect() {
        this.reset();
        const { sweep } = stats();
        if (sweep === undefined) return;
        for (const role of ['prefill', 'decode'] as const) this.inc({ role }, sweep[role][of]);
      },
    });
  };
  swept('cofferdam_pages_swept_total', 'Pages that the sweep held against the ledger', 'pages');
  swept('cofferdam_sweep_passes_total', 'Rounds of the sweep over a whole pool', 'passes');
  swept('cofferdam_sweep_findings_total', 'Writes that no lease explains', 'findings');
}
