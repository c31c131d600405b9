/**
 * Asks for the state once a second while somebody looks: one request at a time, none while the page is hidden or paused, fewer
 * while the server is gone. A number that may be old is called stale, with the time it is of.
 */
import type { DashboardState } from '../state.js';
import { byId, setClass, setText } from './dom.js';
import { main_findings } from './findings-panel.js';
import { clockTime } from './format.js';
import {
  main_alarm,
  main_capacity,
  main_figures,
  main_guards,
  main_head,
  main_latency,
  main_pools,
  main_refusals,
  main_tenants,
} from './panels.js';

const POLL_MS = 1000;
/** One request may take this long before the server counts as gone. */
const ANSWER_MS_MAX = 5000;
/** While the server is gone, each try waits twice as long as the one before, up to this. */
const RETRY_MS_MAX = 10_000;

const PANELS: readonly ((state: DashboardState) => void)[] = [
  main_head,
  main_alarm,
  main_figures,
  main_capacity,
  main_tenants,
  main_pools,
  main_refusals,
  main_latency,
  main_guards,
  main_findings,
];

let timer = 0;
let waitMs = POLL_MS;
let asking = false;
let paused = false;
/** When the numbers on the page were read, by the server's clock; null: there are none yet. */
let shownMs: number | null = null;

function sayLive(kind: 'live' | 'paused' | 'stale', words: string): void {
  setClass(byId('live'), `live ${kind}`);
  setText(byId('live-kind'), kind === 'live' ? 'Live' : kind === 'paused' ? 'Paused' : 'Stale');
  setText(byId('live-words'), words);
}

function sayStale(why: string): void {
  const since = shownMs === null ? 'no number has come yet' : `since ${clockTime(shownMs)}`;
  sayLive('stale', since);
  byId('stale').hidden = false;
  setText(
    byId('stale-words'),
    `${why} ${shownMs === null ? 'There are no numbers yet.' : `The numbers below are stale, of ${clockTime(shownMs)}.`}`,
  );
}

function show(state: DashboardState): void {
  for (const panel of PANELS) panel(state);
  shownMs = state.atMs;
  byId('stale').hidden = true;
  sayLive(paused ? 'paused' : 'live', clockTime(state.atMs));
}

async function ask(): Promise<DashboardState> {
  const answer = await fetch('state', { cache: 'no-store', signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  if (answer.status === 401) throw new Error('The server wants the operators’ key: reload the page to type it.');
  if (!answer.ok) throw new Error(`The server answers with status ${answer.status}.`);
  return (await answer.json()) as DashboardState;
}

async function poll(): Promise<void> {
  if (asking) return;
  asking = true;
  try {
    show(await ask());
    waitMs = POLL_MS;
  } catch (thrown) {
    // A request that never got an answer is a TypeError or a timeout, with words that differ from browser to browser.
    const own = thrown instanceof Error && thrown.name === 'Error';
    sayStale(own ? thrown.message : 'The server does not answer.');
    waitMs = Math.min(RETRY_MS_MAX, waitMs * 2);
  } finally {
    asking = false;
    schedule();
  }
}

function schedule(): void {
  window.clearTimeout(timer);
  if (paused || document.hidden) return;
  timer = window.setTimeout(() => void poll(), waitMs);
}

function resume(): void {
  window.clearTimeout(timer);
  if (!paused && !document.hidden) void poll();
}

function setPaused(next: boolean): void {
  paused = next;
  byId('pause').setAttribute('aria-pressed', String(paused));
  if (paused) sayLive('paused', shownMs === null ? '' : `at ${clockTime(shownMs)}`);
  resume();
}

byId('pause').addEventListener('click', () => setPaused(!paused));
document.addEventListener('visibilitychange', resume);
resume();
