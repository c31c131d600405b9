/** From one state: the shortest way to settle by the system's own steps, as the liveness property asks for. */
import { ACTION_INDEX_MAX, ACTIONS_MAX, type Model } from '../model.js';

/** States looked at from one state; a page is to answer at once. */
export const SETTLE_STATES_MAX = 30_000;

export interface WayToSettle {
  /** Null: none was found. */
  readonly path: readonly number[] | null;
  readonly states: number;
  /** False: there are more states than were looked at, so that "none was found" proves nothing. */
  readonly whole: boolean;
}

/** Breadth first from the state that the model is in, which it is left in. */
export function wayToSettle(model: Model, statesMax: number = SETTLE_STATES_MAX): WayToSettle {
  const words = new Int32Array(model.cells.buffer, model.cells.byteOffset, model.width / 4);
  const start = words.slice();
  const states: Int32Array[] = [start];
  const parents = [-1];
  const via = [-1];
  const seen = new Set([start.join()]);
  const possible = new Int32Array(ACTIONS_MAX);
  let found = model.properties.settled() ? 0 : -1;
  let whole = true;
  for (let id = 0; id < states.length && found < 0; id++) {
    words.set(states[id]);
    const count = model.actions(possible);
    const actions = possible
      .slice(0, count)
      .filter((action) => model.kinds[(action / ACTION_INDEX_MAX) | 0].isProgress);
    for (const action of actions) {
      words.set(states[id]);
      model.next(action);
      words.fill(0, model.wordsUsed());
      const key = words.join();
      if (seen.has(key)) continue;
      if (states.length >= statesMax) {
        whole = false;
        break;
      }
      seen.add(key);
      parents.push(id);
      via.push(action);
      if (model.properties.settled()) found = states.length;
      states.push(words.slice());
      if (found >= 0) break;
    }
  }
  words.set(start);
  return { path: found < 0 ? null : pathTo(found, parents, via), states: states.length, whole };
}

function pathTo(found: number, parents: readonly number[], via: readonly number[]): number[] {
  const path: number[] = [];
  for (let id = found; parents[id] >= 0; id = parents[id]) path.push(via[id]);
  return path.reverse();
}
