import type { Answer } from '../answer.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { asked, type Needle, newName, recalls, stated } from '../recall.js';
import { upperBound } from '../stats/binomial.js';
import type { ProbeTenant } from '../target.js';

/** A code is 30 characters, at most as many tokens; what comes after may hold more of a page. */
const ANSWER_TOKENS = 64;
const ROUNDS = 6;
const PLANTERS = 4;
/** Prompts of each other tenant beside the planting, but for those over the limit; and their tokens, at most. */
const BESIDES = 5;
const BESIDES_TOKENS = 300;
/** Characters of filler in the longest of them. */
const FILLER_CHARACTERS = 240;
/** Where no context is advertised. */
const PROMPT_TOKENS_DEFAULT = 2048;
const PROMPT_TOKENS_MAX = 8192;
/** Times the advertised limit that a prompt is over it; the last is for pools that hold more than is advertised. */
const OVER: readonly number[] = [1.02, 1.4, 2.1];
const OVER_TOKENS_MAX = 65_536;
/** Each costs its deadline, and shows no more than the first ones. */
const HUNG_MAX = 3;
const DEADLINE_MS = 30_000;
/** A low guess, for endpoints that do not count. */
const CHARACTERS_PER_TOKEN = 2;
/** Below this share of the planting prompts that gave their code back, nothing that was planted could have been seen. */
const RECALL_SHARE_MIN = 0.5;
const CONFIDENCE = 0.95;

interface Arms {
  readonly planted: Answer[];
  recalled: number;
  /** Answers to the others that were searched, errors among them. */
  others: number;
  /** Prompts over the limit that got none until their deadline. */
  hung: number;
}

/** Does anything of one tenant's prompts stand in another's answers, while both are served? */
export const canary: Experiment = {
  name: 'canary',
  required: true,
  method: {
    does: 'One tenant fills the pool with long prompts full of 128-bit markers that name it and are never reused; at the same time the others send ordinary prompts, prompts over the limit, and the beginning of what the first one wrote. Every string of every answer is searched for the markers of everyone else, whole and from 12 characters on.',
    control: 'The planting tenant must get its own markers back.',
    tells: 'Whether text of one tenant reaches another, with the rate of it bounded.',
    limits:
      'What a model reads without repeating it leaves no marker; a leak that needs an event that did not happen is not seen.',
  },

  unfit(lab) {
    return lab.target.tenants.length < 2 ? 'it needs two tenants, and one was given' : null;
  },

  plan(lab): ExperimentPlan {
    const long = promptTokens(lab);
    const over = overTokens(lab);
    const others = lab.target.tenants.length - 1;
    // Those over the limit are sent beside the planting and once more after it.
    const perRound =
      PLANTERS * (long + ANSWER_TOKENS) + others * (BESIDES * BESIDES_TOKENS + 2 * over.reduce((a, b) => a + b, 0));
    return {
      requests: ROUNDS * (PLANTERS + others * (BESIDES + 2 * over.length)),
      tokens: ROUNDS * perRound,
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const arms: Arms = { planted: [], recalled: 0, others: 0, hung: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      await oneRound(lab, round, arms);
      // One proven leak is enough to say so; three show that it was no accident of one page.
      if (lab.hits.length >= 3) break;
    }
    return judge(lab, arms);
  },
};

function promptTokens(lab: Lab): number {
  const limit = lab.knowledge.acceptLimit ?? lab.knowledge.advertised;
  return limit === null
    ? PROMPT_TOKENS_DEFAULT
    : Math.min(PROMPT_TOKENS_MAX, Math.floor((limit - ANSWER_TOKENS) * 0.9));
}

function overTokens(lab: Lab): number[] {
  const limit = lab.knowledge.acceptLimit ?? lab.knowledge.advertised;
  if (limit === null) return [];
  return OVER.map((factor) => Math.ceil(limit * factor)).filter((tokens) => tokens <= OVER_TOKENS_MAX);
}

async function oneRound(lab: Lab, round: number, arms: Arms): Promise<void> {
  const planter = lab.tenant(round);
  const others = lab.target.tenants.filter((each) => each !== planter);
  const needles = Array.from({ length: PLANTERS }, () => ({ name: newName(lab.chance), code: lab.marker(planter) }));
  const planting = needles.map((needle) => plant(lab, planter, needle, arms));
  const beside = others.flatMap((tenant) => besides(lab, tenant, needles, arms, round % 2 === 0));
  await Promise.all([...planting, ...beside]);
  // Once more when the pages of the first are free again: what is not cleaned is read by whoever comes next.
  await Promise.all(others.flatMap((tenant) => overs(lab, tenant, arms, round % 2 === 1)));
}

/** A note that repeats its code to the end, as notes and logs do. */
async function plant(lab: Lab, tenant: ProbeTenant, needle: Needle, arms: Arms): Promise<void> {
  const characters = Math.floor(promptTokens(lab) * (lab.knowledge.codeCharactersPerToken ?? CHARACTERS_PER_TOKEN));
  const line = stated(needle);
  const end = asked(needle);
  const lines = Math.max(1, Math.floor((characters - end.length) / line.length));
  const answer = await send(lab, tenant, line.repeat(lines) + end, false);
  arms.planted.push(answer);
  if (recalls(answer.content, needle.code, answer.finishReason) !== 'no') arms.recalled++;
}

/** Two ordinary prompts, three that end as the other tenant's begin, and those over the limit. */
function besides(
  lab: Lab,
  tenant: ProbeTenant,
  needles: readonly Needle[],
  arms: Arms,
  stream: boolean,
): Promise<void>[] {
  const own: Needle = { name: newName(lab.chance), code: lab.marker(tenant) };
  const theirs = needles[0]!;
  const filler = lab.knowledge.ruler?.filler ?? ' the';
  const prompts = [
    `Notes.${stated(own)}${asked(own)}`,
    `Notes.${stated(own)}${filler.repeat(Math.ceil(FILLER_CHARACTERS / filler.length))}${asked(own)}`,
    asked(theirs),
    `Notes.${asked(theirs)}`,
    `Notes.${stated(own)}${asked(theirs)}`,
  ];
  return [
    ...prompts.map(async (prompt) => {
      note(arms, await send(lab, tenant, prompt, stream));
    }),
    ...overs(lab, tenant, arms, stream),
  ];
}

/** What came without any byte of an answer could not be searched. */
function note(arms: Arms, { outcome }: Answer): void {
  if (outcome !== 'hung' && outcome !== 'failed') arms.others++;
}

function overs(lab: Lab, tenant: ProbeTenant, arms: Arms, stream: boolean): Promise<void>[] {
  if (arms.hung >= HUNG_MAX) return [];
  const filler = lab.knowledge.ruler?.filler ?? ' the';
  return overTokens(lab).map(async (tokens) => {
    const answer = await send(lab, tenant, `Notes of ${newName(lab.chance)}.${filler.repeat(tokens)}`, stream);
    note(arms, answer);
    if (answer.outcome === 'hung' || answer.outcome === 'silent') arms.hung++;
  });
}

function send(lab: Lab, tenant: ProbeTenant, prompt: string, stream: boolean): Promise<Answer> {
  return lab.ask({
    tenant,
    prompt,
    maxTokens: ANSWER_TOKENS,
    stream: stream && lab.knowledge.streams,
    deadlineMs: DEADLINE_MS,
  });
}

function judge(lab: Lab, { planted, recalled, others }: Arms): ExperimentResult {
  const sees = planted.length > 0 && recalled / planted.length >= RECALL_SHARE_MIN;
  const bound = upperBound(lab.hits.length, Math.max(lab.hits.length, others), CONFIDENCE);
  const leaks = lab.hits.length > 0;
  const power = sees && bound <= lab.options.bound;
  return {
    name: 'canary',
    verdict: leaks ? 'leaks' : power ? 'isolated' : 'no-power',
    sent: lab.answers,
    hits: lab.hits.length,
    bound,
    control: `${recalled} of ${planted.length} prompts that planted a marker got it back.`,
    evidence: [
      `${lab.hits.length} leaks in ${others} answers to the others: below ${(bound * 100).toFixed(2)} % at 95 %.`,
      ...(sees ? [] : ['The planting tenant did not see its own markers, so a leak of them would not have been seen.']),
    ],
  };
}
