/** Counters that both nodes keep in one shared block, so that anybody can read them at any time without asking. */
import { type GuardName, GUARDS } from '../handoff/guards.js';
import { countPages } from '../handoff/ledger.js';
import type { View } from '../handoff/layout.js';
import type { PageCounts, SweepCounts } from '../handoff/engine-port.js';

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

export class StatsBlock {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Int32Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer((CELLS.length + GUARDS.length) * 4)) {
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
