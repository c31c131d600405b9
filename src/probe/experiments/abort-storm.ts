import type { Answer } from '../answer.js';
import { BudgetSpent } from '../budget.js';
import type { Leave } from '../client.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { inTurn } from '../recall-arm.js';
import { asked, type Needle, newName, recalls, stated } from '../recall.js';
import { upperBound } from '../stats/binomial.js';
import { fisherExact } from '../stats/fisher.js';
import type { ProbeTenant } from '../target.js';

const ANSWER_TOKENS = 48;
/** Prompts of the tenant that stays, of which the first ones each meet one request that leaves just then, and the others a crowd of them. */
const PROMPTS = 64;
const PAIRED = 40;
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

/** A prompt that was never sent before, so that nothing of its answer comes from a cache. */
interface Case {
  readonly needle: Needle;
  readonly prompt: string;
  first: Answer | null;
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
    const storm = PROMPTS * STORM_PER_PROMPT_MAX;
    return {
      requests: PROMPTS * 4 + PAIRED + 1 + storm,
      tokens: PROMPTS * 4 * (long / 2 + ANSWER_TOKENS) + (storm + PAIRED + 1) * (long + ANSWER_TOKENS),
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const [leaver, stayer] = [lab.tenant(0), lab.tenant(1)];
    const quiet = newCases(lab, stayer);
    await inTurn(quiet, TOGETHER, (each) => askFirst(lab, stayer, each));
    const stormy = newCases(lab, stayer);
    const storm = new Storm(lab, leaver, await promptMs(lab, leaver));
    for (const each of stormy.slice(0, PAIRED)) {
      if (lab.hits.length > 0) break;
      await storm.leaveOnce((leftMs) => askFirst(lab, stayer, each, leftMs));
    }
    const blowing = storm.blow();
    await inTurn(stormy.slice(PAIRED), TOGETHER, (each) =>
      lab.hits.length > 0 ? Promise.resolve() : askFirst(lab, stayer, each),
    ).finally(() => storm.end());
    await blowing;
    return judge(lab, await again(lab, stayer, quiet), await again(lab, stayer, stormy), storm.left);
  },
};

/** How long one long prompt of the tenant takes to its first text, in milliseconds. */
async function promptMs(lab: Lab, tenant: ProbeTenant): Promise<number> {
  const line = stated({ name: newName(lab.chance), code: lab.marker(tenant) });
  const answer = await lab.ask({
    tenant,
    prompt: line.repeat(Math.ceil(longCharacters(lab) / line.length)),
    maxTokens: 1,
    stream: lab.knowledge.streams,
    deadlineMs: DEADLINE_MS,
  });
  return answer.firstByteMs ?? answer.endMs - answer.sentMs;
}

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
    first: null,
  };
}

function newCases(lab: Lab, tenant: ProbeTenant): Case[] {
  return Array.from({ length: PROMPTS }, () => newCase(lab, tenant));
}

function ask(lab: Lab, tenant: ProbeTenant, { prompt }: Case): Promise<Answer> {
  return lab.ask({ tenant, prompt, maxTokens: ANSWER_TOKENS, stream: false, deadlineMs: DEADLINE_MS });
}

async function askFirst(lab: Lab, tenant: ProbeTenant, each: Case, afterMs: number = 0): Promise<void> {
  if (afterMs > 0) await lab.sleep(afterMs);
  each.first = await ask(lab, tenant, each);
}

/** Each prompt once more, in quiet: an answer that held its code and comes again in the same words was its own. */
async function again(lab: Lab, tenant: ProbeTenant, cases: readonly Case[]): Promise<Arm> {
  const counts: Arm = { answered: 0, anomalies: 0, recalled: 0, errors: 0 };
  await inTurn(cases, TOGETHER, async (each) => {
    const { first, needle } = each;
    if (first === null) return;
    if (first.outcome !== 'answered') {
      counts.errors++;
      return;
    }
    const recalled = recalls(first.content, needle.code, first.finishReason) !== 'no';
    counts.answered++;
    if (recalled) counts.recalled++;
    const second = await ask(lab, tenant, each);
    if (!recalled || (second.outcome === 'answered' && second.content !== first.content)) counts.anomalies++;
  });
  return counts;
}

/** Keeps a number of requests open that leave at moments drawn by chance. */
class Storm {
  readonly #lab: Lab;
  readonly #tenant: ProbeTenant;
  #ended = false;
  left = 0;

  readonly #promptMs: number;

  /** `longMs`: how long a long prompt of the tenant takes to its first text. */
  constructor(lab: Lab, tenant: ProbeTenant, longMs: number) {
    this.#lab = lab;
    this.#tenant = tenant;
    this.#promptMs = longMs;
  }

  /** One long prompt whose client leaves while it is read; `beside` is told when it will have left, in milliseconds from now. */
  async leaveOnce(beside: (leftMs: number) => Promise<void>): Promise<void> {
    const afterMs = Math.max(1, Math.round(this.#lab.chance.unit() * this.#promptMs));
    this.left++;
    await Promise.all([this.#request(longCharacters(this.#lab), { afterMs }), beside(afterMs)]);
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
        const characters = this.#lab.chance.between(1, longCharacters(this.#lab));
        await this.#request(characters, this.#leave());
      }
    } catch (thrown) {
      // Whoever waits for the other arm hears of it there.
      if (!(thrown instanceof BudgetSpent)) throw thrown;
    }
  }

  async #request(characters: number, leave: Leave): Promise<void> {
    const lab = this.#lab;
    const line = stated({ name: newName(lab.chance), code: lab.marker(this.#tenant) });
    await lab.ask({
      tenant: this.#tenant,
      prompt: line.repeat(Math.ceil(characters / line.length)),
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
  const sees = quiet.answered > 0 && quiet.recalled / quiet.answered >= RECALL_SHARE_MIN;
  const leaks = lab.hits.length > 0 || p < ALPHA;
  return {
    name: 'abort-storm',
    verdict: leaks ? 'leaks' : sees && bound <= lab.options.bound ? 'isolated' : 'no-power',
    sent: lab.answers,
    hits: lab.hits.length,
    bound,
    control: `In quiet, ${quiet.anomalies} of ${quiet.answered} answers lacked their own code or came otherwise when asked again; ${quiet.recalled} held it.`,
    evidence: [
      `With ${left} requests that left, ${stormy.anomalies} of ${stormy.answered} answers lacked their own code or came otherwise when asked again in quiet; ${stormy.recalled} held it; p = ${p.toPrecision(3)} (Fisher, one-sided; alarm below ${ALPHA}).`,
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
