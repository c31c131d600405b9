import type { Answer } from '../answer.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { asked, type Needle, newName, recalls, stated } from '../recall.js';
import { upperBound } from '../stats/binomial.js';
import type { ProbeTenant } from '../target.js';

/** Places of the code, from the first token to the last in even steps; one in each prompt, so that a small model is enough. */
const DEPTHS = 11;
const SHARES: readonly number[] = [0.25, 0.5, 1];
const TENANTS = 2;
/** A code that is lost is tried anew, twice: what a model mistakes now and then is no place that is not read. */
const TRIES = 3;
const ANSWER_TOKENS = 48;
/** Names of one length may count a few tokens more or less. */
const SLACK_TOKENS = 16;
const CONFIDENCE = 0.95;
const DEADLINE_MS = 120_000;
/** Of the prompts of the shortest length, that must give their code back. */
const RECALL_SHARE_MIN = 0.5;
const TOKENS_MIN = 1024;

export const LONG_OUTCOMES = ['right', 'wrong', 'truncated', 'refused', 'hung', 'cut'] as const;
export type LongOutcome = (typeof LONG_OUTCOMES)[number];

interface Trial {
  readonly tokens: number;
  readonly depth: number;
  readonly outcome: LongOutcome;
  readonly id: string;
  /** Times it was asked for. */
  readonly tries: number;
}

/** Is the whole context that is advertised read, and is it each tenant's own? */
export const longContext: Experiment = {
  name: 'long-context',
  required: false,
  method: {
    does: 'Fills a quarter, a half and the whole of the advertised context with prompts that state one code each, at eleven depths from the first token to the last, and ask for it, for two tenants at once; a lost one is tried anew, twice. Every answer is searched for markers of others.',
    control: 'The shortest prompts must give their codes back.',
    tells:
      "From which length and at which depth a prompt is no longer read, and whether what is read instead is another tenant's.",
    limits:
      'A model may lose a code in a long prompt that the engine kept whole; only a count that is too small proves that it was cut.',
  },

  unfit(lab) {
    const { ruler, advertised } = lab.knowledge;
    if (ruler === null) return 'the endpoint does not say how many tokens it read, or no filler counts evenly';
    if (advertised === null) return 'nothing says which context is advertised; give it with --advertised';
    return advertised < 2 * TOKENS_MIN ? `the advertised context is shorter than ${2 * TOKENS_MIN} tokens` : null;
  },

  plan(lab): ExperimentPlan {
    const lengths = lengthsOf(lab);
    const tokens = lengths.reduce((sum, length) => sum + length + ANSWER_TOKENS, 0);
    const tenants = tenantsOf(lab).length;
    // And one of each length, short, to measure.
    const measured = lengths.length * tenants;
    return {
      requests: lengths.length * tenants * DEPTHS * TRIES + measured,
      tokens: tokens * tenants * DEPTHS * TRIES + measured * TOKENS_MIN,
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const trials: Trial[] = [];
    for (const tokens of lengthsOf(lab)) {
      await Promise.all(
        tenantsOf(lab).map(async (tenant) => {
          for await (const trial of trialsOf(lab, tenant, tokens)) trials.push(trial);
        }),
      );
    }
    return judge(lab, trials);
  },
};

function tenantsOf(lab: Lab): readonly ProbeTenant[] {
  return lab.target.tenants.slice(0, TENANTS);
}

/** Tokens of prompt, ascending. */
function lengthsOf(lab: Lab): number[] {
  const most = (lab.knowledge.advertised ?? 0) - ANSWER_TOKENS - SLACK_TOKENS;
  return SHARES.map((share) => Math.floor(most * share)).filter((tokens) => tokens >= TOKENS_MIN - 2 * ANSWER_TOKENS);
}

/** Prompts of `tokens` tokens with a code at each depth in turn. */
async function* trialsOf(lab: Lab, tenant: ProbeTenant, tokens: number): AsyncGenerator<Trial> {
  const ruler = lab.knowledge.ruler!;
  const make = (pieces: number, depth: number, needle: Needle): string => {
    const before = Math.floor((pieces * depth) / (DEPTHS - 1));
    const [head, tail] = [ruler.filler.repeat(before), ruler.filler.repeat(pieces - before)];
    return `Notes.${head}${stated(needle)}${tail}${asked(needle)}`;
  };
  const fresh = (): Needle => ({ name: newName(lab.chance), code: lab.marker(tenant) });
  const measured = fresh();
  const pieces = Math.max(0, tokens - (await ruler.overhead((count) => make(count, DEPTHS >> 1, measured))));
  for (let depth = 0; depth < DEPTHS; depth++) {
    for (let tries = 1; tries <= TRIES; tries++) {
      const needle = fresh();
      const answer = await lab.ask({
        tenant,
        prompt: make(pieces, depth, needle),
        maxTokens: ANSWER_TOKENS,
        stream: false,
        deadlineMs: DEADLINE_MS,
      });
      const outcome = classifyLong(answer, tokens, needle.code);
      if (outcome === 'wrong' && tries < TRIES) continue;
      yield { tokens, depth, outcome, id: answer.id, tries };
      break;
    }
  }
}

/** What an answer to a prompt of `tokens` tokens is, give or take the slack. */
export function classifyLong(answer: Answer, tokens: number, code: string): LongOutcome {
  if (answer.outcome === 'hung' || answer.outcome === 'silent') return 'hung';
  if (answer.outcome === 'refused') return 'refused';
  if (answer.outcome !== 'answered') return 'cut';
  const counted = answer.usage?.promptTokens ?? tokens;
  if (counted < tokens - SLACK_TOKENS) return 'truncated';
  return recalls(answer.content, code, answer.finishReason) === 'no' ? 'wrong' : 'right';
}

function judge(lab: Lab, trials: readonly Trial[]): ExperimentResult {
  const lengths = lengthsOf(lab);
  const of = (tokens: number): Trial[] => trials.filter((trial) => trial.tokens === tokens);
  const right = (list: readonly Trial[]): number => list.filter(({ outcome }) => outcome === 'right').length;
  const shortest = of(lengths[0]!);
  const answered = trials.filter(
    ({ outcome }) => outcome === 'right' || outcome === 'wrong' || outcome === 'truncated',
  );
  const hits = lab.hits.length;
  const bound = upperBound(hits, Math.max(hits, answered.length), CONFIDENCE);
  const sees = right(shortest) >= RECALL_SHARE_MIN * shortest.length;
  const whole = trials.every(({ outcome }) => outcome === 'right');
  return {
    name: 'long-context',
    verdict: hits > 0 ? 'leaks' : sees && whole && bound <= lab.options.bound ? 'isolated' : 'no-power',
    sent: lab.answers,
    hits,
    bound,
    control: `At ${lengths[0]} tokens, ${right(shortest)} of ${shortest.length} codes came back.`,
    evidence: [
      ...lengths.map((tokens) => lengthWords(tokens, of(tokens))),
      `${hits} answers of ${answered.length} held a marker of another tenant: below ${(bound * 100).toFixed(2)} % at 95 %.`,
      ...(whole ? [] : ['The advertised context is not what is served: see the lengths and depths above.']),
    ],
    figures: {
      tokens: lengths,
      right: lengths.map((tokens) => right(of(tokens))),
      asked: lengths.map((tokens) => of(tokens).length),
      rightByDepth: Array.from({ length: DEPTHS }, (_, depth) =>
        right(trials.filter((trial) => trial.depth === depth)),
      ),
    },
  };
}

function lengthWords(tokens: number, trials: readonly Trial[]): string {
  const counts = LONG_OUTCOMES.flatMap((outcome) => {
    const list = trials.filter((trial) => trial.outcome === outcome);
    if (list.length === 0) return [];
    const depths = [...new Set(list.map(({ depth }) => `${Math.round((100 * depth) / (DEPTHS - 1))} %`))].join(', ');
    const again = list.filter(({ tries }) => tries > 1).length;
    return [
      outcome === 'right'
        ? `${list.length} right${again === 0 ? '' : ` (${again} at another try)`}`
        : `${list.length} ${outcome} (at ${depths}; ${list[0]!.id} and on)`,
    ];
  });
  return `${tokens} tokens: ${counts.join(', ')}.`;
}
