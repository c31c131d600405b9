import type { Answer } from '../answer.js';
import { BudgetSpent } from '../budget.js';
import type { Leave } from '../client.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { inTurn } from '../recall-arm.js';
import { asked, newName, recalls, stated } from '../recall.js';
import { upperBound } from '../stats/binomial.js';
import { fisherExact } from '../stats/fisher.js';
import type { ProbeTenant } from '../target.js';

const ANSWER_TOKENS = 48;
/** Prompts of the tenant that stays. The first ones are sent just when one request leaves, the others amid a crowd of them. */
const PROMPTS = 64;
const PAIRED = 48;
/** Of these: both requests as short as they can be, so that the second is written while the writes of the first may still be on their way. */
const SHORT = 32;
const TOGETHER = 6;
/** Requests of the tenant that leaves, open at once in a crowd. */
const CROWD_TOGETHER = 8;
/** Those that leave in the crowd, at most. */
const CROWD_MAX = 256;
const DEADLINE_MS = 30_000;
const LONG_TOKENS_MAX = 4096;
const LONG_TOKENS_DEFAULT = 1024;
/** Of text around what has to be said, in the shortest prompts, and at most in those that are to be short. */
const TEXT_LEAST = 8;
const TEXT_SHORT = 64;
/** Of a prompt that leaves: one line of it, and at most where it is to be short. */
const LINE_LEAST = 55;
const LINES_SHORT = 220;
/** Times that the shortest and the longest prompt are timed. */
const PILOTS = 2;
/** Low guess, for endpoints that do not count. */
const CHARACTERS_PER_TOKEN = 2;
/** Chance of an alarm where nothing is wrong. */
const ALPHA = 0.001;
const CONFIDENCE = 0.95;
const RECALL_SHARE_MIN = 0.5;

/** A prompt that was never sent before, so that nothing of its answer comes from a cache. */
interface Case {
  /** What it asks for the code of. */
  readonly name: string;
  /** The code that it states; null: none, to be as short as can be. */
  readonly code: string | null;
  readonly prompt: string;
  first: Answer | null;
}

/** What became of one arm. An error is not an anomaly: whoever is refused reads nothing of others. */
interface Arm {
  answered: number;
  anomalies: number;
  /** Of the prompts that stated a code, those that were answered, and those that gave it back. */
  stated: number;
  recalled: number;
  errors: number;
}

/** Do clients that leave at random moments change what another tenant reads? */
export const abortStorm: Experiment = {
  name: 'abort-storm',
  required: true,
  method: {
    does: "One tenant's clients leave at random moments (before the first byte, while the prompt is read, at the first text, later). Another's prompts, sent just then and amid a crowd of such clients, ask for a code of a name that both know; their answers are searched for markers, checked for their own code, and compared with the same prompts asked in quiet, at temperature 0.",
    control: 'As many other prompts, asked in quiet both times: how often answers go wrong or differ without a storm.',
    tells: "Whether leaving changes other tenants' answers, beyond what differs anyway.",
    limits:
      'A window that the random moments do not meet is not seen; an endpoint whose answers differ a lot in quiet hides small changes.',
  },

  unfit(lab) {
    return lab.target.tenants.length < 2 ? 'it needs two tenants, and one was given' : null;
  },

  plan(lab): ExperimentPlan {
    const long = longTokens(lab);
    const leaving = 2 * PILOTS + PAIRED + CROWD_MAX;
    return {
      requests: PROMPTS * 4 + leaving,
      tokens: PROMPTS * 4 * (long / 2 + ANSWER_TOKENS) + leaving * (long + ANSWER_TOKENS),
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const [leaver, stayer] = [lab.tenant(0), lab.tenant(1)];
    const quiet = newCases(lab, stayer);
    await inTurn(quiet, TOGETHER, (each) => askFirst(lab, stayer, each));
    const stormy = newCases(lab, stayer);
    const storm = new Storm(lab, leaver, await measurePace(lab, leaver));
    for (const [i, each] of stormy.slice(0, PAIRED).entries()) {
      if (lab.hits.length > 0) break;
      await storm.leaveOnce(each.name, i < SHORT, async (leftMs) => {
        await lab.sleep(leftMs);
        await askFirst(lab, stayer, each);
      });
    }
    const amid = stormy.slice(PAIRED);
    const blowing = storm.blow(amid.map(({ name }) => name));
    await inTurn(amid, TOGETHER, (each) =>
      lab.hits.length > 0 ? Promise.resolve() : askFirst(lab, stayer, each),
    ).finally(() => storm.end());
    await blowing;
    return judge(lab, await again(lab, stayer, quiet), await again(lab, stayer, stormy), storm.left);
  },
};

/** How long a prompt of the tenant takes to its first text, in milliseconds, by its characters. */
type Pace = (characters: number) => number;

/** Each of two lengths at its fastest, and a straight line through both. */
async function measurePace(lab: Lab, tenant: ProbeTenant): Promise<Pace> {
  const long = longCharacters(lab);
  let [shortMs, longMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let i = 0; i < PILOTS; i++) {
    shortMs = Math.min(shortMs, await firstTextMs(lab, tenant, LINE_LEAST));
    longMs = Math.min(longMs, await firstTextMs(lab, tenant, long));
  }
  const eachMs = Math.max(0, longMs - shortMs) / Math.max(1, long - LINE_LEAST);
  return (characters) => shortMs + eachMs * Math.max(0, characters - LINE_LEAST);
}

async function firstTextMs(lab: Lab, tenant: ProbeTenant, characters: number): Promise<number> {
  const answer = await lab.ask({
    tenant,
    prompt: codes(lab, tenant, newName(lab.chance), characters),
    maxTokens: 1,
    stream: lab.knowledge.streams,
    deadlineMs: DEADLINE_MS,
  });
  return answer.firstTextMs ?? answer.endMs - answer.sentMs;
}

/** One code of the tenant, stated over and over. */
function codes(lab: Lab, tenant: ProbeTenant, name: string, characters: number): string {
  const line = stated({ name, code: lab.marker(tenant) });
  return line.repeat(Math.ceil(characters / line.length));
}

function longTokens(lab: Lab): number {
  const limit = lab.knowledge.acceptLimit ?? lab.knowledge.advertised;
  return limit === null ? LONG_TOKENS_DEFAULT : Math.min(LONG_TOKENS_MAX, Math.floor((limit - ANSWER_TOKENS) * 0.8));
}

function longCharacters(lab: Lab): number {
  return Math.floor(longTokens(lab) * (lab.knowledge.codeCharactersPerToken ?? CHARACTERS_PER_TOKEN));
}

/** As often between 1 and 2 times the least as between 8 and 16 times. */
function anyLength(lab: Lab, least: number, most: number): number {
  return Math.round(least * (Math.max(least, most) / least) ** lab.chance.unit());
}

/** A prompt of a length of its own, with its code in the first half. */
function newCase(lab: Lab, tenant: ProbeTenant, isShort: boolean, states: boolean): Case {
  const name = newName(lab.chance);
  const code = states ? lab.marker(tenant) : null;
  const characters = anyLength(lab, TEXT_LEAST, isShort ? TEXT_SHORT : longCharacters(lab) >> 1);
  const filler = lab.knowledge.ruler?.filler ?? ' the';
  const text = filler.repeat(Math.ceil(characters / filler.length));
  const at = lab.chance.below(characters >> 1);
  const said = code === null ? '' : stated({ name, code });
  const prompt = `Notes.${text.slice(0, at)}${said}${text.slice(at, characters)}${asked({ name })}`;
  return { name, code, prompt, first: null };
}

function newCases(lab: Lab, tenant: ProbeTenant): Case[] {
  // Without a code a prompt is shorter; with one, more of it shows what was written over.
  return Array.from({ length: PROMPTS }, (_, i) => newCase(lab, tenant, i < SHORT, i >= SHORT || i % 2 === 1));
}

function ask(lab: Lab, tenant: ProbeTenant, { prompt }: Case): Promise<Answer> {
  return lab.ask({ tenant, prompt, maxTokens: ANSWER_TOKENS, stream: false, deadlineMs: DEADLINE_MS });
}

async function askFirst(lab: Lab, tenant: ProbeTenant, each: Case): Promise<void> {
  each.first = await ask(lab, tenant, each);
}

/** Each prompt once more, in quiet: an answer that held its code and comes again in the same words was its own. */
async function again(lab: Lab, tenant: ProbeTenant, cases: readonly Case[]): Promise<Arm> {
  const counts: Arm = { answered: 0, anomalies: 0, stated: 0, recalled: 0, errors: 0 };
  await inTurn(cases, TOGETHER, async (each) => {
    const { first, code } = each;
    if (first === null) return;
    if (first.outcome !== 'answered') {
      counts.errors++;
      return;
    }
    counts.answered++;
    const isRight = code === null || recalls(first.content, code, first.finishReason) !== 'no';
    if (code !== null) counts.stated++;
    if (code !== null && isRight) counts.recalled++;
    const second = await ask(lab, tenant, each);
    if (!isRight || (second.outcome === 'answered' && second.content !== first.content)) counts.anomalies++;
  });
  return counts;
}

/** Requests that leave at moments drawn by chance: one at a time, or a number of them kept open. */
class Storm {
  readonly #lab: Lab;
  readonly #tenant: ProbeTenant;
  readonly #pace: Pace;
  #ended = false;
  left = 0;

  constructor(lab: Lab, tenant: ProbeTenant, pace: Pace) {
    this.#lab = lab;
    this.#tenant = tenant;
    this.#pace = pace;
  }

  /**
   * One prompt about `name` whose client leaves before its first text; `beside` is told when that will be, in milliseconds from now.
   */
  async leaveOnce(name: string, isShort: boolean, beside: (leftMs: number) => Promise<void>): Promise<void> {
    const characters = anyLength(this.#lab, LINE_LEAST, isShort ? LINES_SHORT : longCharacters(this.#lab));
    const afterMs = Math.max(1, Math.round(this.#lab.chance.unit() * this.#pace(characters)));
    this.left++;
    await Promise.all([this.#request(name, characters, { afterMs }), beside(afterMs)]);
  }

  end(): void {
    this.#ended = true;
  }

  /** A crowd of prompts about any of `names`, until `end`. */
  async blow(names: readonly string[]): Promise<void> {
    await Promise.all(Array.from({ length: CROWD_TOGETHER }, () => this.#one(names)));
  }

  async #one(names: readonly string[]): Promise<void> {
    const { chance } = this.#lab;
    try {
      for (let i = 0; !this.#ended && i < CROWD_MAX / CROWD_TOGETHER; i++) {
        this.left++;
        const characters = anyLength(this.#lab, LINE_LEAST, longCharacters(this.#lab));
        await this.#request(chance.pick(names), characters, this.#leave());
      }
    } catch (thrown) {
      // Whoever waits for the other arm hears of it there.
      if (!(thrown instanceof BudgetSpent)) throw thrown;
    }
  }

  async #request(name: string, characters: number, leave: Leave): Promise<void> {
    const lab = this.#lab;
    await lab.ask({
      tenant: this.#tenant,
      prompt: codes(lab, this.#tenant, name, characters),
      maxTokens: ANSWER_TOKENS,
      stream: lab.knowledge.streams,
      deadlineMs: DEADLINE_MS,
      leave,
    });
  }

  #leave(): Leave {
    const { chance, knowledge } = this.#lab;
    const smallMs = Math.max(2, Math.min(1000, knowledge.smallMs ?? 20));
    return chance.pick<Leave>([
      { afterMs: chance.below(3) },
      { afterMs: chance.between(1, Math.ceil(smallMs * 4)) },
      { afterMs: chance.between(1, Math.ceil(smallMs * 40)) },
      { atBytes: 1 },
      { atText: chance.between(1, 16) },
    ]);
  }
}

function judge(lab: Lab, quiet: Arm, stormy: Arm, left: number): ExperimentResult {
  const p = fisherExact(
    {
      hitsA: stormy.anomalies,
      missesA: stormy.answered - stormy.anomalies,
      hitsB: quiet.anomalies,
      missesB: quiet.answered - quiet.anomalies,
    },
    'greater',
  );
  const bound = upperBound(lab.hits.length, Math.max(lab.hits.length, stormy.answered), CONFIDENCE);
  const sees = quiet.stated > 0 && quiet.recalled / quiet.stated >= RECALL_SHARE_MIN;
  const leaks = lab.hits.length > 0 || p < ALPHA;
  return {
    name: 'abort-storm',
    verdict: leaks ? 'leaks' : sees && bound <= lab.options.bound ? 'isolated' : 'no-power',
    sent: lab.answers,
    hits: lab.hits.length,
    bound,
    control: `In quiet, ${quiet.anomalies} of ${quiet.answered} answers lacked their own code or came otherwise when asked again; ${quiet.recalled} of ${quiet.stated} that stated a code gave it back.`,
    evidence: [
      `With ${left} requests that left, ${stormy.anomalies} of ${stormy.answered} answers lacked their own code or came otherwise when asked again in quiet; ${stormy.recalled} of ${stormy.stated} gave their code back; p = ${p.toPrecision(3)} (Fisher, one-sided; alarm below ${ALPHA}).`,
      `${stormy.errors} requests of the tenant that stayed got an error in the storm, ${quiet.errors} in quiet.`,
      `${lab.hits.length} answers held a marker of the tenant that left: below ${(bound * 100).toFixed(2)} % at 95 %.`,
    ],
    figures: {
      quietAnswered: quiet.answered,
      quietAnomalies: quiet.anomalies,
      stormAnswered: stormy.answered,
      stormAnomalies: stormy.anomalies,
      p,
    },
  };
}
