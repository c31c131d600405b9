/** Breadth-first exploration: shortest counterexamples, a bound that is said, liveness over the whole graph that was seen. */
import type { Model } from './model.js';

export interface Exploration {
  readonly verdict: 'holds' | 'violated' | 'incomplete';
  readonly distinct: number;
  readonly generated: number;
  readonly depth: number;
  /** What broke, and the actions that lead there. */
  readonly broken: { readonly words: string; readonly path: readonly string[] } | null;
  readonly reached: Readonly<Record<string, boolean>>;
  /** States from which nothing settled can be reached; null where the graph was cut by the bound. */
  readonly stuck: { readonly count: number; readonly path: readonly string[] } | null;
}

export interface ExploreOptions {
  /** The most distinct states that are kept; a space that has more is cut, and the verdict says so. */
  readonly statesMax: number;
}

const ACTIONS_MAX = 256;

class StateTable {
  readonly cells: Uint8Array;
  readonly parent: Int32Array;
  readonly action: Int32Array;
  count = 0;
  readonly #index: Int32Array;
  readonly #mask: number;

  constructor(
    readonly width: number,
    statesMax: number,
  ) {
    this.cells = new Uint8Array(width * statesMax);
    this.parent = new Int32Array(statesMax);
    this.action = new Int32Array(statesMax);
    let size = 1;
    while (size < statesMax * 2) size *= 2;
    this.#index = new Int32Array(size);
    this.#mask = size - 1;
  }

  /** The number of the state, and whether it is new; -1 where it is new and the table is full. */
  add(state: Uint8Array, parent: number, action: number): { readonly id: number; readonly isNew: boolean } {
    let probe = hashOf(state, this.width) & this.#mask;
    for (;;) {
      const found = this.#index[probe];
      if (found === 0) break;
      if (this.#same(found - 1, state)) return { id: found - 1, isNew: false };
      probe = (probe + 1) & this.#mask;
    }
    if (this.count >= this.parent.length) return { id: -1, isNew: false };
    const id = this.count++;
    this.#index[probe] = id + 1;
    this.cells.set(state, id * this.width);
    this.parent[id] = parent;
    this.action[id] = action;
    return { id, isNew: true };
  }

  #same(id: number, state: Uint8Array): boolean {
    const at = id * this.width;
    for (let i = 0; i < this.width; i++) if (this.cells[at + i] !== state[i]) return false;
    return true;
  }
}

function hashOf(state: Uint8Array, width: number): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < width; i++) h = Math.imul(h ^ state[i], 0x01000193);
  h ^= h >>> 15;
  h = Math.imul(h, 0x2c1b3c6d);
  return (h ^ (h >>> 13)) >>> 0;
}

export function explore(model: Model, options: ExploreOptions): Exploration {
  const { width } = model;
  const table = new StateTable(width, options.statesMax);
  const scratch = new Uint8Array(width);
  const actions = new Int32Array(ACTIONS_MAX);
  const edgesFrom: number[] = [];
  const edgesTo: number[] = [];
  const reached = new Map(model.sometimes.map((property) => [property.name, false]));
  let generated = 0;
  let isCut = false;
  model.init(scratch, 0);
  table.add(scratch, -1, -1);
  const depths = [0];
  for (let id = 0; id < table.count; id++) {
    const at = id * width;
    for (const property of model.sometimes) if (property.holds(table.cells, at)) reached.set(property.name, true);
    const words = model.broken(table.cells, at);
    if (words !== null) {
      return result('violated', { words, path: pathTo(model, table, id) }, null);
    }
    const count = model.actions(table.cells, at, actions);
    for (let i = 0; i < count; i++) {
      if (!model.next(table.cells, at, actions[i], scratch, 0)) continue;
      generated++;
      const { id: to, isNew } = table.add(scratch, id, actions[i]);
      if (to < 0) {
        isCut = true;
        break;
      }
      if (isNew) depths.push(depths[id] + 1);
      edgesFrom.push(id);
      edgesTo.push(to);
    }
    if (isCut) break;
  }
  if (isCut) return result('incomplete', null, null);
  const stuck = stuckStates(model, table, edgesFrom, edgesTo);
  return result(stuck.count > 0 ? 'violated' : 'holds', null, stuck);

  function result(
    verdict: Exploration['verdict'],
    broken: Exploration['broken'],
    stuckFound: Exploration['stuck'],
  ): Exploration {
    const depth = depths[table.count - 1];
    return {
      verdict,
      distinct: table.count,
      generated,
      depth,
      broken,
      reached: Object.fromEntries(reached),
      stuck: stuckFound,
    };
  }
}

function pathTo(model: Model, table: StateTable, id: number): string[] {
  const path: string[] = [];
  for (let state = id; table.parent[state] >= 0; state = table.parent[state]) {
    path.unshift(model.inWords(table.action[state], table.cells, table.parent[state] * table.width));
  }
  return path;
}

/** Backwards from the settled states over every edge: what is not met can never settle. */
function stuckStates(
  model: Model,
  table: StateTable,
  edgesFrom: readonly number[],
  edgesTo: readonly number[],
): { count: number; path: string[] } {
  const starts = new Int32Array(table.count + 1);
  for (const to of edgesTo) starts[to + 1]++;
  for (let i = 0; i < table.count; i++) starts[i + 1] += starts[i];
  const into = new Int32Array(edgesTo.length);
  const fill = starts.slice();
  for (const [i, to] of edgesTo.entries()) into[fill[to]++] = edgesFrom[i];
  const canSettle = new Uint8Array(table.count);
  const queue: number[] = [];
  for (let id = 0; id < table.count; id++) {
    if (!model.settled(table.cells, id * table.width)) continue;
    canSettle[id] = 1;
    queue.push(id);
  }
  while (queue.length > 0) {
    const id = queue.pop() as number;
    for (let i = starts[id]; i < starts[id + 1]; i++) {
      if (canSettle[into[i]] === 1) continue;
      canSettle[into[i]] = 1;
      queue.push(into[i]);
    }
  }
  const first = canSettle.indexOf(0);
  if (first < 0) return { count: 0, path: [] };
  return { count: canSettle.reduce((sum, can) => sum + (1 - can), 0), path: pathTo(model, table, first) };
}
