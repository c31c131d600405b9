/**
 * Where a system that cannot settle ends up: a strongly connected component that no progress leaves. The first states from which nothing
 * can settle often look harmless (all that follows is doomed, and nothing is wrong yet); a trap is where it shows.
 */
import type { BitSet } from './store.js';

/** Stuck states that are looked at; with more of them the lowest stuck state is told instead. */
const STUCK_MAX = 4_000_000;

export type EachState = (visit: (state: number, targets: readonly number[], from: number, to: number) => void) => void;

/** The lowest state, in the order of exploration, that lies in a trap. `settled` holds those that can settle; not all of them do. */
export function firstTrapped(settled: BitSet, states: number, eachState: EachState): number {
  const stuck: number[] = [];
  for (let state = 0; state < states && stuck.length <= STUCK_MAX; state++) if (!settled.has(state)) stuck.push(state);
  if (stuck.length > STUCK_MAX) return stuck[0];
  const graph = stuckGraph(stuck, settled, states, eachState);
  const component = components(graph.starts, graph.targets);
  const isLeft = new Uint8Array(stuck.length);
  for (let at = 0; at < stuck.length; at++) {
    for (let edge = graph.starts[at]; edge < graph.starts[at + 1]; edge++) {
      if (component[graph.targets[edge]] !== component[at]) isLeft[component[at]] = 1;
    }
  }
  // Every finite graph has a component that nothing leaves.
  return stuck[component.findIndex((number) => isLeft[number] === 0)];
}

interface Graph {
  readonly starts: Int32Array;
  readonly targets: readonly number[];
}

function stuckGraph(stuck: readonly number[], settled: BitSet, states: number, eachState: EachState): Graph {
  const numberOf = new Int32Array(states);
  for (const [at, state] of stuck.entries()) numberOf[state] = at;
  const starts = new Int32Array(stuck.length + 1);
  const targets: number[] = [];
  eachState((state, all, from, to) => {
    if (settled.has(state)) return;
    for (let edge = from; edge < to; edge++) targets.push(numberOf[all[edge]]);
    starts[numberOf[state] + 1] = targets.length;
  });
  return { starts, targets };
}

/** Tarjan's strongly connected components, without recursion: the number of each state's component. */
export function components(starts: Int32Array, targets: readonly number[]): Int32Array {
  const count = starts.length - 1;
  const order = new Int32Array(count);
  const low = new Int32Array(count);
  const next = starts.slice(0, count);
  const component = new Int32Array(count).fill(-1);
  const open: number[] = [];
  const path: number[] = [];
  let visited = 0;
  let found = 0;
  for (let root = 0; root < count; root++) {
    if (order[root] !== 0) continue;
    path.push(root);
    while (path.length > 0) {
      const at = path[path.length - 1];
      if (order[at] === 0) {
        order[at] = low[at] = ++visited;
        open.push(at);
      }
      let isDeeper = false;
      while (next[at] < starts[at + 1] && !isDeeper) {
        const to = targets[next[at]];
        if (order[to] === 0) {
          path.push(to);
          isDeeper = true;
        } else {
          if (component[to] < 0) low[at] = Math.min(low[at], low[to]);
          next[at]++;
        }
      }
      if (isDeeper) continue;
      path.pop();
      if (low[at] === order[at]) {
        for (let member = -1; member !== at; ) {
          member = open.pop() as number;
          component[member] = found;
        }
        found++;
      }
    }
  }
  return component;
}
