/** One function for each panel: it takes the whole state and fills its own part of the page. */
import type { CapacityPart, DashboardState, NodeRow, PoolRow, SeverityName, TenantRow } from '../state.js';
import { byId, type Cell, fillRows, setClass, setText, type Share } from './dom.js';
import { duration, NONE, percent, plural, span, UNKNOWN, whole } from './format.js';

/** Worst first, as everywhere. */
export const SEVERITY_ORDER: readonly SeverityName[] = ['critical', 'high', 'medium', 'low', 'info'];

export function main_head(state: DashboardState): void {
  const models = state.engine.models.join(', ');
  setText(byId('engine'), `${state.engine.kind} engine, model ${models}, up ${span(state.atMs - state.startedMs)}`);
}

/** Guards off or faults on: in words, above everything, on every screen. */
export function main_alarm(state: DashboardState): void {
  const { guardsOff, faults } = state;
  const parts: string[] = [];
  if (faults.length > 0) parts.push(`${plural(faults.length, 'fault')} on: ${faults.join(', ')}.`);
  if (guardsOff.length > 0) parts.push(`${plural(guardsOff.length, 'guard')} off: ${guardsOff.join(', ')}.`);
  const alarm = byId('alarm');
  alarm.hidden = parts.length === 0;
  setText(byId('alarm-words'), parts.join(' '));
}

export function main_figures(state: DashboardState): void {
  const { requests, capacity, findings } = state;
  const { limit } = capacity;
  const figure = (id: string, value: string, words: string): void => {
    setText(byId(`${id}-value`), value);
    setText(byId(`${id}-words`), words);
  };
  figure(
    'figure-limit',
    limit === null ? NONE : whole(limit.tokens),
    limit === null ? 'unknown, so nothing is admitted' : `tokens, set by the ${limit.limitedBy}`,
  );
  figure('figure-running', whole(requests.running), `of ${whole(requests.runningMax)} at once`);
  figure('figure-waiting', whole(requests.waiting), 'for their turn');
  figure('figure-admitted', whole(requests.admitted), `${whole(requests.clamped)} with less output`);
  figure('figure-refused', whole(requests.refused), refusedShare(requests.refused, requests.admitted));
  figure(
    'figure-shielded',
    requests.shielded === null ? NONE : whole(requests.shielded),
    requests.shielded === null ? 'no shield here' : 'clients that left early',
  );
  const worst = SEVERITY_ORDER.find((severity) => findings.bySeverity[severity] > 0);
  figure(
    'figure-findings',
    whole(findings.total),
    worst === undefined ? 'nothing noticed' : `worst: ${worst}, ${whole(findings.bySeverity[worst])}`,
  );
  setClass(byId('figure-findings'), worst === 'critical' || worst === 'high' ? 'figure wrong' : 'figure');
}

function refusedShare(refused: number, admitted: number): string {
  const all = refused + admitted;
  return all === 0 ? 'of none so far' : `${percent(refused / all)} of ${whole(all)}`;
}

export function main_capacity(state: DashboardState): void {
  const { capacity } = state;
  setText(byId('capacity-words'), capacityWords(capacity));
  fillRows(
    'capacity-rows',
    capacity.nodes,
    (row) => `${row.node} ${row.role}`,
    nodeCells,
    'No node has said anything yet.',
  );
}

/** The incident in one sentence: what was promised, what there is, and what happens to what lies between. */
function capacityWords({ context, limit, nodes }: CapacityPart): string {
  if (limit === null) return 'A number is not known, so every request is refused until it is.';
  const small = nodes.filter((row) => row.advertised !== null && row.pool !== null && row.advertised > row.pool);
  const limitWords = `Prompts above ${plural(limit.tokens, 'token')} are refused before an engine sees them; the ${limit.limitedBy} sets this limit.`;
  if (small.length === 0)
    return `Every node holds the advertised context of ${plural(context ?? 0, 'token')}. ${limitWords}`;
  return `The advertised context of ${plural(context ?? 0, 'token')} does not fit ${small.map((row) => row.node).join(' and ')}. ${limitWords}`;
}

function nodeCells(row: NodeRow): Cell[] {
  const { advertised, pool } = row;
  const numbers: Cell[] = [row.node, whole(advertised), whole(pool)];
  const origin: Cell[] = [word(row.role), word(row.source)];
  if (advertised === null || pool === null) {
    return [
      ...numbers,
      { text: UNKNOWN, className: 'wrong' },
      { text: NONE, className: 'with-bar', bar: [] },
      ...origin,
    ];
  }
  const missing = advertised - pool;
  const verdict: Cell =
    missing > 0 ? { text: `${whole(missing)} short`, className: 'wrong' } : { text: 'fits', className: 'fits' };
  const bar: Share[] = [
    { kind: 'holds', share: pool / advertised },
    { kind: 'lacks', share: missing / advertised },
  ];
  return [...numbers, verdict, { text: percent(pool / advertised), className: 'with-bar', bar }, ...origin];
}

function word(text: string): Cell {
  return { text, className: 'word' };
}

export function main_tenants(state: DashboardState): void {
  const { tenants, capacity, pools } = state;
  const pool = capacity.decodePool;
  fillRows(
    'tenants-rows',
    tenants.rows,
    (row) => row.name,
    (row) => tenantCells(row, pool),
  );
  const sealed = pools.find(({ role }) => role === 'decode')?.sealed;
  fillRows(
    'tenants-sum',
    [sumOf(tenants.rows, sealed === undefined ? null : sealed * capacity.pageTokens)],
    () => 'sum',
    (row) => tenantCells(row, pool),
  );
  const left = tenants.total - tenants.rows.length;
  setText(byId('tenants-left'), left === 0 ? '' : `${plural(left, 'further tenant')} in /metrics.`);
}

function sumOf(rows: readonly TenantRow[], cached: number | null): TenantRow {
  const sum = (field: 'running' | 'waiting' | 'leased' | 'draining'): number =>
    rows.reduce((total, row) => total + row[field], 0);
  const waiting = sum('waiting');
  return { name: 'All', running: sum('running'), waiting, leased: sum('leased'), draining: sum('draining'), cached };
}

function tenantCells(row: TenantRow, pool: number | null): Cell[] {
  const used = row.leased + row.draining;
  const share = pool === null ? Number.NaN : used / pool;
  const of = (tokens: number): number => (pool === null ? 0 : tokens / pool);
  return [
    row.name,
    quiet(row.running),
    quiet(row.waiting),
    quiet(used),
    quiet(row.leased),
    quiet(row.draining),
    row.cached === null ? { text: NONE, className: 'zero' } : quiet(row.cached),
    {
      text: percent(share),
      className: 'with-bar',
      bar: [
        { kind: 'leased', share: of(row.leased) },
        { kind: 'draining', share: of(row.draining) },
        { kind: 'cached', share: of(row.cached ?? 0) },
      ],
    },
  ];
}

/** A zero steps back, so that what is not zero stands out. */
function quiet(value: number): Cell {
  return { text: whole(value), className: value === 0 ? 'zero' : '' };
}

export function main_pools(state: DashboardState): void {
  byId('pools').hidden = state.pools.length === 0;
  fillRows('pools-rows', state.pools, (row) => row.role, poolCells);
}

function poolCells(row: PoolRow): Cell[] {
  const of = (pages: number): number => (row.total === 0 ? 0 : pages / row.total);
  return [
    row.role,
    whole(row.total),
    quiet(row.free),
    quiet(row.leased),
    quiet(row.draining),
    quiet(row.sealed),
    {
      text: percent(of(row.total - row.free)),
      className: 'with-bar',
      bar: [
        { kind: 'leased', share: of(row.leased) },
        { kind: 'draining', share: of(row.draining) },
        { kind: 'cached', share: of(row.sealed) },
      ],
    },
  ];
}

export function main_refusals(state: DashboardState): void {
  fillRows(
    'refusals-rows',
    state.refusals,
    (row) => row.reason,
    (row) => [row.reason, String(row.status), whole(row.count)],
    'Nothing has been refused.',
  );
}

export function main_guards(state: DashboardState): void {
  fillRows(
    'guards-rows',
    state.guards,
    (row) => row.guard,
    (row) => [
      row.guard,
      row.on ? { text: 'on', className: 'word' } : { text: 'OFF', className: 'word wrong' },
      quiet(row.stopped),
    ],
  );
  const { checks } = state;
  setText(
    byId('checks'),
    checks === null
      ? ''
      : `${plural(checks.tagsChecked, 'tag')} compared at reads, ${plural(checks.pagesVerified, 'page')} verified at commits, ` +
          `${plural(checks.landingsRefused, 'late landing')} refused.`,
  );
}

export function main_latency(state: DashboardState): void {
  const { ttft, total } = state.latency;
  const rows = [
    { name: 'To the first text', ...ttft },
    { name: 'To the end', ...total },
  ];
  fillRows(
    'latency-rows',
    rows,
    (row) => row.name,
    (row) => [row.name, duration(row.p50), duration(row.p95), duration(row.p99), whole(row.count)],
  );
}
