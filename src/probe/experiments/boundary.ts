import type { Answer } from '../answer.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { asked, type Needle, newName, recalls, stated } from '../recall.js';
import type { ProbeTenant } from '../target.js';

/** Tokens of answer that are asked for: a code is 30 characters, at most as many tokens. */
const ANSWER_TOKENS = 34;
const PLACES = ['start', 'middle', 'end'] as const;
const DEADLINE_MS = 20_000;
/** Below this share of the prompt a count is a placeholder, not a truncation. */
const PLACEHOLDER_SHARE = 0.5;
const BISECTION_STEPS_MAX = 12;
const LENGTH_MIN = 160;
/** Each costs its deadline, and shows no more than the first ones. */
const HUNG_MAX = 3;

export type BoundaryOutcome =
  | 'right'
  | 'wrong'
  | 'truncated'
  | 'placeholder'
  | 'empty'
  | 'hung'
  | 'refused'
  | 'refused-without-numbers'
  | 'server-error'
  | 'cut'
  | 'foreign';

interface Trial {
  readonly tokens: number;
  readonly stream: boolean;
  readonly outcome: BoundaryOutcome;
  readonly counted: number | null;
  readonly id: string;
}

/** Do prompts at the edge of what is advertised, and beyond it, get an answer to themselves, or an error that says so? */
export const boundary: Experiment = {
  name: 'boundary',
  required: true,
  method: {
    does: 'Sends prompts of exactly known length around the advertised limit and, where an engine was named, around its KV pool, with a code at the start, in the middle and at the end, streamed and whole.',
    control: 'A prompt well inside the limit must give its code back and be counted exactly.',
    tells: 'Whether a prompt that does not fit is refused, or is answered from something else than itself.',
    limits:
      'An answer that is merely bad looks like one that did not read its prompt; a leak shows only where the pages held a marker.',
  },

  unfit(lab) {
    if (lab.knowledge.ruler === null)
      return 'the endpoint does not say how many tokens it read, or no filler counts evenly';
    return lab.knowledge.advertised === null
      ? 'nothing says which context is advertised; give it with --advertised'
      : null;
  },

  plan(lab): ExperimentPlan {
    const lengths = lengthsOf(lab);
    const each = lengths.reduce((sum, length) => sum + length + ANSWER_TOKENS, 0);
    const perLength = PLACES.length * 2;
    return {
      requests: lengths.length * perLength + PLACES.length + BISECTION_STEPS_MAX,
      tokens: each * perLength,
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const trials: Trial[] = [];
    const inside = Math.max(LENGTH_MIN, Math.floor((lab.knowledge.advertised ?? LENGTH_MIN) / 8));
    const control = await trial(lab, lab.tenant(0), inside, 'middle', false);
    for (const length of lengthsOf(lab)) {
      for (const place of PLACES) {
        for (const stream of lab.knowledge.streams ? [false, true] : [false]) {
          if (trials.filter(({ outcome }) => outcome === 'hung').length >= HUNG_MAX) continue;
          trials.push(await trial(lab, lab.tenant(trials.length), length, place, stream));
        }
      }
    }
    const largest = await largestRight(lab, trials, inside);
    return judge(lab, control, trials, largest);
  },
};

/** The lengths that are tried, in tokens of prompt, ascending: each limit less the answer, each limit, and one beyond. */
function lengthsOf(lab: Lab): number[] {
  const { advertised, pool, acceptLimit } = lab.knowledge;
  const lengths = new Set<number>();
  for (const limit of [advertised, pool, acceptLimit]) {
    if (limit === null) continue;
    for (const length of [limit - ANSWER_TOKENS, limit - 1, limit, limit + 1])
      if (length >= LENGTH_MIN) lengths.add(length);
  }
  return [...lengths].sort((a, b) => a - b);
}

async function trial(
  lab: Lab,
  tenant: ProbeTenant,
  tokens: number,
  place: (typeof PLACES)[number],
  stream: boolean,
): Promise<Trial> {
  const needle: Needle = { name: newName(lab.chance), code: lab.marker(tenant) };
  const ruler = lab.knowledge.ruler!;
  const make = (pieces: number): string => {
    const before = place === 'start' ? 0 : place === 'end' ? pieces : pieces >> 1;
    return `Notes.${ruler.filler.repeat(before)}${stated(needle)}${ruler.filler.repeat(pieces - before)}${asked(needle)}`;
  };
  const pieces = tokens - (await ruler.overhead(make));
  const hitsBefore = lab.hits.length;
  const answer = await lab.ask({
    tenant,
    prompt: make(Math.max(0, pieces)),
    maxTokens: ANSWER_TOKENS,
    stream,
    deadlineMs: DEADLINE_MS,
  });
  const outcome = lab.hits.length > hitsBefore ? 'foreign' : classify(answer, tokens, needle.code);
  return { tokens, stream, outcome, counted: answer.usage?.promptTokens ?? null, id: answer.id };
}

/** What an answer to a prompt of exactly `tokens` tokens is. */
export function classify(answer: Answer, tokens: number, code: string): BoundaryOutcome {
  if (answer.outcome === 'hung' || answer.outcome === 'silent') return 'hung';
  if (answer.outcome === 'refused') return classifyRefusal(answer);
  if (answer.outcome !== 'answered') return 'cut';
  const counted = answer.usage?.promptTokens ?? null;
  if (counted !== null && counted < tokens * PLACEHOLDER_SHARE) return 'placeholder';
  if (counted !== null && counted !== tokens) return 'truncated';
  if (answer.content.trim() === '') return 'empty';
  return recalls(answer.content, code, answer.finishReason) === 'no' ? 'wrong' : 'right';
}

function classifyRefusal(answer: Answer): BoundaryOutcome {
  if (answer.status === null || answer.status >= 500) return 'server-error';
  return (answer.error?.numbers.length ?? 0) > 0 ? 'refused' : 'refused-without-numbers';
}

/** The largest length that got its answer, by bisection where an advertised one did not; null: none did. */
async function largestRight(lab: Lab, trials: readonly Trial[], inside: number): Promise<number | null> {
  const right = trials.filter(({ outcome }) => outcome === 'right').map(({ tokens }) => tokens);
  let low = Math.max(inside, ...right);
  let high = lab.knowledge.advertised ?? low;
  if (trials.some(({ outcome }) => outcome === 'hung')) return low;
  if (trials.every(({ outcome, tokens }) => outcome === 'right' || tokens > high - ANSWER_TOKENS)) return low;
  for (let step = 0; step < BISECTION_STEPS_MAX && high - low > 1; step++) {
    const middle = (low + high) >> 1;
    const { outcome } = await trial(lab, lab.tenant(step), middle, 'middle', false);
    if (outcome === 'right') low = middle;
    else high = middle;
  }
  return low;
}

function judge(lab: Lab, control: Trial, trials: readonly Trial[], largest: number | null): ExperimentResult {
  const counts = new Map<BoundaryOutcome, Trial[]>();
  for (const each of trials) counts.set(each.outcome, [...(counts.get(each.outcome) ?? []), each]);
  const evidence = [...counts].map(([outcome, list]) => sentence(outcome, list));
  if (largest !== null)
    evidence.push(
      `The largest prompt that got its own answer has ${largest} tokens, the advertised context ${lab.knowledge.advertised}.`,
    );
  const of = (...outcomes: BoundaryOutcome[]): boolean => outcomes.some((outcome) => counts.has(outcome));
  const powerless =
    control.outcome !== 'right' || of('wrong', 'truncated', 'placeholder', 'empty', 'cut', 'server-error');
  return {
    name: 'boundary',
    verdict: of('foreign') ? 'leaks' : of('hung') ? 'starves' : powerless ? 'no-power' : 'isolated',
    sent: lab.answers,
    hits: lab.hits.length,
    bound: null,
    control: `A prompt of ${control.tokens} tokens, well inside the limit, was ${control.outcome}.`,
    evidence,
    figures: { lengths: trials.map(({ tokens }) => tokens) },
  };
}

function sentence(outcome: BoundaryOutcome, list: readonly Trial[]): string {
  const lengths = [...new Set(list.map(({ tokens }) => tokens))].join(', ');
  const counted = [...new Set(list.map((each) => each.counted).filter((count) => count !== null))].join(', ');
  const said = counted === '' || outcome === 'right' ? '' : `, counted by the endpoint as ${counted}`;
  return `${outcome}: ${list.length} answers at ${lengths} tokens${said} (${list[0]!.id} and on).`;
}
