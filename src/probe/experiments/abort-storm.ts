import type { Answer } from '../answer.js';
import { BudgetSpent } from '../budget.js';
import type { Leave } from '../client.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { asked, type Needle, newName, recalls, stated } from '../recall.js';
import { upperBound } from '../stats/binomial.js';
import { fisherExact } from '../stats/fisher.js';
import type { ProbeTenant } from '../target.js';

const ANSWER_TOKENS = 48;
/** Prompts of the tenant that stays; each is asked three times: alone, alone again, in the storm. */
const PROMPTS = 64;
const TOGETHER = 6;
/** Requests of the tenant that leaves, open at once. */
const STORM_TOGETHER = 8;
/** Those that leave for each answer of the other, at most. */
const STORM_PER_PROMPT_MAX = 4;
const DEADLINE_MS = 30_000;
const LONG_TOKENS_MAX = 4096;
const LONG_TOKENS_DEFAULT = 1024;
/** Low guess, for endpoints that do not count. */
const CHARACTERS_PER_TOKEN = 2;
/** Chance of an alarm where nothing is wrong. */
const ALPHA = 0.001;
const CONFIDENCE = 0.95;
const RECALL_SHARE_MIN = 0.5;

interface Case {
  readonly needle: Needle;
  readonly prompt: string;
  alone: string | null;
}

/** What became of one arm. An error is not an anomaly: whoever is refused reads nothing of others. */
interface Arm {
  answered: number;
  anomalies: number;
  recalled: number;
  errors: number;
}

/** Do clients that leave at random moments change what another tenant reads? */
export const abortStorm: Experiment = {
  name: 'abort-storm',
  required: true,
  method: {
    does: "One tenant's clients leave at random moments (before the first byte, while the prompt is read, at the first text, later), while another's answers are searched for markers, checked for their own code, and compared with the same prompts asked in quiet, at temperature 0.",
    control: 'The same prompts asked twice in quiet: how often answers differ without a storm.',
    tells: "Whether leaving changes other tenants' answers, beyond what differs anyway.",
    limits:
      'A window that the random moments do not meet is not seen; an endpoint whose answers differ a lot in quiet hides small changes.',
  },

  unfit(lab) {
    return lab.target.tenants.length < 2 ? 'it needs two tenants, and one was given' : null;
  },

  plan(lab): ExperimentPlan {
    const long = longTokens(lab);
    const storm = PROMPTS * STORM_PER_PROMPT_MAX;
    return {
      requests: PROMPTS * 3 + storm,
      tokens: PROMPTS * 3 * (long / 2 + ANSWER_TOKENS) + storm * (long + ANSWER_TOKENS),
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const [leaver, stayer] = [lab.tenant(0), lab.tenant(1)];
    const cases = Array.from({ length: PROMPTS }, () => newCase(lab, stayer));
    await inTurn(cases, async (each) => {
      const answer = await ask(lab, stayer, each);
      each.alone = answer.outcome === 'answered' ? answer.content : null;
    });
    const quiet = await arm(lab, stayer, cases);
    const storm = new Storm(lab, leaver);
    const blowing = storm.blow();
    const stormy = await arm(lab, stayer, cases, () => lab.hits.length > 0).finally(() => storm.end());
    await blowing;
    return judge(lab, quiet, stormy, storm.left);
  },
};

function longTokens(lab: Lab): number {
  const limit = lab.knowledge.acceptLimit ?? lab.knowledge.advertised;
  return limit === null ? LONG_TOKENS_DEFAULT : Math.min(LONG_TOKENS_MAX, Math.floor((limit - ANSWER_TOKENS) * 0.8));
}

function longCharacters(lab: Lab): number {
  return Math.floor(longTokens(lab) * (lab.knowledge.codeCharactersPerToken ?? CHARACTERS_PER_TOKEN));
}

/** A prompt of a length of its own, with its code in the first half. */
function newCase(lab: Lab, tenant: ProbeTenant): Case {
  const needle: Needle = { name: newName(lab.chance), code: lab.marker(tenant) };
  const characters = lab.chance.between(200, Math.max(201, longCharacters(lab) >> 1));
  const filler = lab.knowledge.ruler?.filler ?? ' the';
  const text = filler.repeat(Math.ceil(characters / filler.length));
  const at = lab.chance.below(characters >> 1);
  return {
    needle,
    prompt: `Notes.${text.slice(0, at)}${stated(needle)}${text.slice(at, characters)}${asked(needle)}`,
    alone: null,
  };
}

function ask(lab: Lab, tenant: ProbeTenant, { prompt }: Case): Promise<Answer> {
  return lab.ask({ tenant, prompt, maxTokens: ANSWER_TOKENS, stream: false, deadlineMs: DEADLINE_MS });
}

async function inTurn<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < items.length) await work(items[next++]!);
  };
  await Promise.all(Array.from({ length: TOGETHER }, one));
}

async function arm(lab: Lab, tenant: ProbeTenant, cases: readonly Case[], enough?: () => boolean): Promise<Arm> {
  const counts: Arm = { answered: 0, anomalies: 0, recalled: 0, errors: 0 };
  await inTurn(cases, async (each) => {
    if (each.alone === null || enough?.() === true) return;
    const answer = await ask(lab, tenant, each);
    if (answer.outcome !== 'answered') {
      counts.errors++;
      return;
    }
    const recalled = recalls(answer.content, each.needle.code, answer.finishReason) !== 'no';
    counts.answered++;
    if (recalled) counts.recalled++;
    if (answer.content !== each.alone) counts.anomalies++;
  });
  return counts;
}

/** Keeps a number of requests open that leave at moments drawn by chance. */
class Storm {
  readonly #lab: Lab;
  readonly #tenant: ProbeTenant;
  #ended = false;
  left = 0;

  constructor(lab: Lab, tenant: ProbeTenant) {
    this.#lab = lab;
    this.#tenant = tenant;
  }

  end(): void {
    this.#ended = true;
  }

  async blow(): Promise<void> {
    await Promise.all(Array.from({ length: STORM_TOGETHER }, () => this.#one()));
  }

  async #one(): Promise<void> {
    try {
      while (!this.#ended && this.left < PROMPTS * STORM_PER_PROMPT_MAX) {
        this.left++;
        await this.#request();
      }
    } catch (thrown) {
      // Whoever waits for the other arm hears of it there.
      if (!(thrown instanceof BudgetSpent)) throw thrown;
    }
  }

  async #request(): Promise<void> {
    const lab = this.#lab;
    const line = stated({ name: newName(lab.chance), code: lab.marker(this.#tenant) });
    const characters = lab.chance.between(line.length, longCharacters(lab));
    await lab.ask({
      tenant: this.#tenant,
      prompt: line.repeat(Math.ceil(characters / line.length)),
      maxTokens: ANSWER_TOKENS,
      stream: lab.knowledge.streams,
      deadlineMs: DEADLINE_MS,
      leave: this.#leave(),
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
  const sees = quiet.answered > 0 && quiet.recalled / quiet.answered >= RECALL_SHARE_MIN;
  const leaks = lab.hits.length > 0 || p < ALPHA;
  return {
    name: 'abort-storm',
    verdict: leaks ? 'leaks' : sees && bound <= lab.options.bound ? 'isolated' : 'no-power',
    sent: lab.answers,
    hits: lab.hits.length,
    bound,
    control: `Asked twice in quiet, ${quiet.anomalies} of ${quiet.answered} answers differed, and ${quiet.recalled} held their own code.`,
    evidence: [
      `With ${left} requests that left, ${stormy.anomalies} of ${stormy.answered} answers differed from those in quiet, and ${stormy.recalled} held their own code; p = ${p.toPrecision(3)} (Fisher, one-sided; alarm below ${ALPHA}).`,
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
