/** The plan of a run in words: what will be sent, what it takes, and what can't come of it. Pure. */
import type { BudgetLimits } from './budget.js';
import type { Knowledge } from './lab.js';
import type { PlannedExperiment } from './result.js';
import { requestsForBound } from './stats/binomial.js';

export interface PlanContext {
  readonly knowledge: Knowledge;
  readonly limits: BudgetLimits;
  /** What learning took. */
  readonly spent: { readonly requests: number; readonly tokens: number };
  /** What a million tokens cost, in whatever currency the operator thinks of; null: not said. */
  readonly price: number | null;
  readonly bound: number;
}

const CONFIDENCE = 0.95;
/** Those whose verdict needs the bound of a rate: fewer clean answers than it takes are no power. */
const BOUNDED: readonly string[] = ['canary', 'abort-storm'];
/** Requests of an experiment that an engine serves at the same time, for the guess of its time. */
const SERVED_TOGETHER = 4;

export interface Span {
  readonly least: number;
  readonly most: number;
}

/**
 * Seconds that an experiment takes if it sends all that is planned, roughly: its tokens one after the other and its requests a few at a time, at
 * the pace of the small requests that were measured. Null: nothing was measured.
 */
export function secondsOf({ plan }: PlannedExperiment, { smallMs, tokenMs }: Knowledge): Span | null {
  if (plan.seconds !== null) return { least: plan.seconds, most: plan.seconds };
  if (smallMs === null) return null;
  const requestsMs = (plan.requests * smallMs) / SERVED_TOGETHER;
  const { least, most } = tokenMs ?? { least: 0, most: 0 };
  return { least: (requestsMs + plan.tokens * least) / 1000, most: (requestsMs + plan.tokens * most) / 1000 };
}

/** Between the two, as far from the one as from the other in proportion. */
function middleOf({ least, most }: Span): number {
  return Math.sqrt(Math.max(0.1, least) * Math.max(0.1, most));
}

/** Lines for people, without line breaks. */
export function planLines(plan: readonly PlannedExperiment[], context: PlanContext): string[] {
  const { knowledge } = context;
  const fit = plan.filter(({ unfit }) => unfit === null);
  const lines = [knownLine(knowledge), ...plan.map((each) => experimentLine(each, knowledge))];
  if (fit.length > 0) lines.push(totalLine(fit, context));
  return [...lines, ...shortages(fit, context)];
}

function knownLine(knowledge: Knowledge): string {
  const from = knowledge.advertisedFrom === null ? '' : ` (${knowledge.advertisedFrom})`;
  const engine =
    knowledge.engine === null ? '' : `, engine ${`${knowledge.engine} ${knowledge.engineVersion ?? ''}`.trim()}`;
  const parts = [
    knowledge.advertised === null ? 'no context advertised' : `context ${knowledge.advertised} tokens${from}`,
    knowledge.pool === null ? 'pool unknown' : `pool ${knowledge.pool} tokens`,
    knowledge.ruler === null ? 'prompts are not counted' : 'prompts are counted',
    knowledge.streams ? 'streams' : 'no streams',
  ];
  return `target: ${parts.join(', ')}${engine}`;
}

function experimentLine(experiment: PlannedExperiment, knowledge: Knowledge): string {
  const { name, required, unfit, plan } = experiment;
  const asked = required ? '' : ' (not part of the verdict unless it sees something)';
  if (unfit !== null) return `  ${name}: can not run: ${unfit}${asked}`;
  const seconds = secondsOf(experiment, knowledge);
  return `  ${name}: at most ${whole(plan.requests)} requests, ${whole(plan.tokens)} tokens, ${spanText(seconds)}${asked}`;
}

function totalLine(fit: readonly PlannedExperiment[], { knowledge, price }: PlanContext): string {
  const tokens = sum(fit.map(({ plan }) => plan.tokens));
  const times = fit.map((each) => secondsOf(each, knowledge));
  const known = times.filter((each) => each !== null);
  const seconds =
    known.length < times.length
      ? null
      : { least: sum(known.map(({ least }) => least)), most: sum(known.map(({ most }) => most)) };
  const cost = price === null ? '' : `, at most ${costText((tokens / 1e6) * price)} at ${price} per million tokens`;
  return `in all: at most ${whole(sum(fit.map(({ plan }) => plan.requests)))} requests, ${whole(tokens)} tokens, ${spanText(seconds)}${cost}`;
}

/** What the limits don't allow, before anything is sent for it. */
function shortages(fit: readonly PlannedExperiment[], { knowledge, limits, spent, bound }: PlanContext): string[] {
  const lines: string[] = [];
  const needed = requestsForBound(bound, CONFIDENCE);
  for (const { name, plan } of fit) {
    if (BOUNDED.includes(name) && plan.requests < needed)
      lines.push(
        `no power: --bound ${bound} takes ${whole(needed)} answers without a leak, and ${name} sends at most ${whole(plan.requests)} requests`,
      );
  }
  let { requests, tokens } = spent;
  let seconds = 0;
  for (const each of fit) {
    requests += each.plan.requests;
    tokens += each.plan.tokens;
    const span = secondsOf(each, knowledge);
    seconds += span === null ? 0 : middleOf(span);
    const short =
      requests > limits.requests
        ? `--budget-requests ${limits.requests}`
        : tokens > limits.tokens
          ? `--budget-tokens ${limits.tokens}`
          : seconds * 1000 > limits.durationMs
            ? `--max-duration ${limits.durationMs / 1000}s`
            : null;
    if (short !== null) {
      lines.push(`too small: ${short} may end before ${each.name} is through; what is stopped has no power to tell`);
      break;
    }
  }
  return lines;
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** Digits in groups of three. */
export function whole(value: number): string {
  return String(Math.ceil(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

function costText(cost: number): string {
  return cost >= 1 || cost === 0 ? cost.toFixed(2) : cost.toPrecision(2);
}

const MINUTE_S = 60;
const HOUR_S = 3600;

/** `about 40 s to 3 min`; one time where both say the same. */
export function spanText(span: Span | null): string {
  if (span === null) return 'time unknown';
  const [least, most] = [timeText(span.least), timeText(span.most)];
  return least === most ? least : `${least} to ${most.replace('about ', '')}`;
}

/** `about 40 s`: one digit or two, since more would be made up. */
export function timeText(seconds: number): string {
  if (seconds < 1) return 'about 1 s';
  if (seconds < MINUTE_S) return `about ${Number(seconds.toPrecision(1))} s`;
  if (seconds < HOUR_S) return `about ${Math.round(seconds / MINUTE_S)} min`;
  return `about ${Number((seconds / HOUR_S).toPrecision(2))} h`;
}
