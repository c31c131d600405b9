/** A failing world made smaller: fewer steps, fewer troubles, fewer requests, for as long as the same thing breaks. */
import { ALL_GUARDS } from '../handoff/guards.js';
import { type SimOptions, TROUBLES } from './plan.js';
import { type SimResult, simulate } from './world.js';

/** Worlds that are tried at most: some seconds. */
const TRIES_MAX = 160;

export interface Shrunk {
  readonly options: SimOptions;
  readonly result: SimResult;
  readonly tries: number;
}

/** `failed` is what `options` came to. What is answered breaks the same invariant. */
export function shrink(options: SimOptions, failed: SimResult): Shrunk {
  let best = { options, result: failed };
  let tries = 0;
  const attempt = (change: Partial<SimOptions>): boolean => {
    if (tries >= TRIES_MAX) return false;
    tries++;
    const smaller = { ...best.options, ...change };
    const result = simulate(smaller);
    if (result.violation?.invariant !== failed.violation?.invariant) return false;
    best = { options: smaller, result };
    return true;
  };
  for (let isSmaller = true; isSmaller && tries < TRIES_MAX; ) {
    // No bound is left larger than what was used.
    const { steps, requests } = best.result.counts;
    let isCut = attempt({ steps: Math.min(best.options.steps, steps + 1), requests: Math.max(1, requests) });
    isCut = isCut && (steps + 1 < best.options.steps || requests < best.options.requests);
    isSmaller = isCut;
    for (const trouble of TROUBLES) {
      const { without } = best.options;
      if (!without.includes(trouble) && attempt({ without: [...without, trouble] })) isSmaller = true;
    }
    isSmaller = lower('requests') || isSmaller;
    isSmaller = lower('steps') || isSmaller;
  }
  return { ...best, tries };

  /** Down by halves, then by quarters, to single ones. */
  function lower(what: 'requests' | 'steps'): boolean {
    const before = best.options[what];
    for (let by = Math.floor(before / 2); by >= 1; ) {
      const value = best.options[what] - by;
      if (value < 1 || !attempt({ [what]: value })) by = Math.floor(by / 2);
    }
    return best.options[what] < before;
  }
}

/** The command that runs the world again. */
export function replayLine({ seed, steps, requests, fault, guards, without }: SimOptions): string {
  const words = ['cofferdam verify --simulate', `--seed ${seed}`, `--steps ${steps}`, `--requests ${requests}`];
  if (fault !== null) words.push(`--fault ${fault}`);
  const isOn = guards === ALL_GUARDS || (guards === null && fault === null);
  if (fault !== null || !isOn) words.push(`--guards ${isOn ? 'on' : 'off'}`);
  if (without.length > 0) words.push(`--without ${without.join(',')}`);
  return words.join(' ');
}
