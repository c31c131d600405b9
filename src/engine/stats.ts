/** Counters that both nodes keep in one shared block, so that anybody can read them at any time without asking. */
import { type GuardName, GUARDS } from '../handoff/guards.js';
import { countPages, countSealed } from '../handoff/ledger.js';
import type { View } from '../handoff/layout.js';
import type { EngineStats, PageCounts, SweepCounts } from '../handoff/engine-port.js';

const CELLS = [
  'prefillFree',
  'prefillLeased',
  'prefillDraining',
  'prefillSealed',
  'decodeFree',
  'decodeLeased',
  'decodeDraining',
  'decodeSealed',
  'pagesVerified',
  'tagsChecked',
  'landingsRefused',
  'landingsRefusedBefore',
  'decodeSteps',
  'tokensPrefilled',
  'prefillPagesSwept',
  'prefillSweepPasses',
  'prefillSweepFindings',
  'decodePagesSwept',
  'decodeSweepPasses',
  'decodeSweepFindings',
] as const;
type Cell = (typeof CELLS)[number];
const AT = Object.fromEntries(CELLS.map((name, index) => [name, index])) as Record<Cell, number>;
const GUARD_BASE = CELLS.length;
const SEALED_BASE = GUARD_BASE + GUARDS.length;
/** Tenants whose sealed pages are counted one by one; a gateway has at most as many keys. */
const TENANTS_COUNTED = 1001;

export class StatsBlock {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Int32Array;
  readonly #sealed = new Int32Array(TENANTS_COUNTED);

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer((SEALED_BASE + TENANTS_COUNTED) * 4)) {
    this.buffer = buffer;
    this.#cells = new Int32Array(buffer);
  }

  get(cell: Cell): number {
    return Atomics.load(this.#cells, AT[cell]) >>> 0;
  }

  set(cell: Cell, value: number): void {
    Atomics.store(this.#cells, AT[cell], value);
  }

  add(cell: Cell, by: number): void {
    Atomics.add(this.#cells, AT[cell], by);
  }

  addGuardHit(guard: number): void {
    Atomics.add(this.#cells, GUARD_BASE + guard, 1);
  }

  guardHits(): Record<GuardName, number> {
    const entries = GUARDS.map((name, index) => [name, Atomics.load(this.#cells, GUARD_BASE + index)] as const);
    return Object.fromEntries(entries) as Record<GuardName, number>;
  }

  /** Counts the pages of a node's ledger into the block. */
  setPages(view: View): void {
    const totals = countPages(view);
    const base = view.shape.actor === 'prefill' ? AT.prefillFree : AT.decodeFree;
    Atomics.store(this.#cells, base, totals.free);
    Atomics.store(this.#cells, base + 1, totals.leased);
    Atomics.store(this.#cells, base + 2, totals.draining);
    Atomics.store(this.#cells, base + 3, totals.sealed);
    if (view.shape.actor === 'decode') this.#setSealed(view);
  }

  #setSealed(view: View): void {
    countSealed(view, this.#sealed);
    for (let tenant = 0; tenant < TENANTS_COUNTED; tenant++) {
      const count = this.#sealed[tenant] ?? 0;
      // Counted elsewhere and stored only where it changed, so that a reader never sees a count half done.
      if (this.#cells[SEALED_BASE + tenant] !== count) Atomics.store(this.#cells, SEALED_BASE + tenant, count);
    }
  }

  sweepAndSealed(): Required<Pick<EngineStats, 'sweep' | 'sealedByTenant'>> {
    const sealedByTenant = new Map<number, number>();
    for (let tenant = 0; tenant < TENANTS_COUNTED; tenant++) {
      const count = Atomics.load(this.#cells, SEALED_BASE + tenant);
      if (count > 0) sealedByTenant.set(tenant, count);
    }
    return { sweep: { prefill: this.sweep('prefill'), decode: this.sweep('decode') }, sealedByTenant };
  }

  setSweep(node: 'prefill' | 'decode', counts: { pagesSwept: number; passes: number; findings: number }): void {
    this.set(`${node}PagesSwept`, counts.pagesSwept);
    this.set(`${node}SweepPasses`, counts.passes);
    this.set(`${node}SweepFindings`, counts.findings);
  }

  sweep(node: 'prefill' | 'decode'): SweepCounts {
    const pages = this.get(`${node}PagesSwept`);
    return { pages, passes: this.get(`${node}SweepPasses`), findings: this.get(`${node}SweepFindings`) };
  }

  pages(node: 'prefill' | 'decode', total: number): PageCounts {
    const base = node === 'prefill' ? AT.prefillFree : AT.decodeFree;
    const [free, leased, draining, sealed] = [0, 1, 2, 3].map((i) => Atomics.load(this.#cells, base + i));
    return { free: free ?? 0, leased: leased ?? 0, draining: draining ?? 0, sealed: sealed ?? 0, total };
  }
}
