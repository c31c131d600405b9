import type { Answer } from '../answer.js';
import type { Leave } from '../client.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { asked, newName, stated } from '../recall.js';
import { upperBound } from '../stats/binomial.js';
import type { ProbeTenant } from '../target.js';

const TRIALS = 20;
/** Of so many trials with one burden. */
const STARVED = 3;
const FIRST_TOKEN_MS = 20_000;
const CONTROL_FACTOR = 5;
/** Requests of the burden beside each small one. */
const BESIDE = 4;
const SMALL_TOKENS = 4;
/** Beside answers that grow it asks for more, so that it is still there when they have filled what they share with it. */
const SMALL_TOKENS_LASTING = 128;
/** Of the context, for each prompt whose answer grows; three of them leave little of a pool that holds one context. */
const GROWING_SHARE = 0.3;
const GROWING_BESIDE = 3;
const ORDINARY_TOKENS = 256;
const ORDINARY_ANSWER_TOKENS = 16;
const ABANDONED_TOKENS_MAX = 2048;
const CONTEXT_DEFAULT = 4096;
const OVER: readonly number[] = [1.02, 1.4, 2.1];
/** Of all over-long prompts together, where the context is large. */
const OVER_TOKENS_MAX = 1_500_000;
/** Low guess, for endpoints that do not count. */
const CHARACTERS_PER_TOKEN = 2;
/** Between two trials, so that what grows has time to. */
const PAUSE_MS = 100;
/** For a burden that would end by itself, after the small request has. */
const GRACE_MS = 1_000;
const BACK_OFF_MS_MAX = 2_000;
const TOTAL_MS = 5 * 60_000;
const CONFIDENCE = 0.95;
/** Answers with 429, as a share of a burden, above which there was none. */
const THROTTLED_SHARE_MAX = 0.5;

/** What the one tenant does beside the other's small requests. `ordinary` is the control. */
export const BURDENS = ['ordinary', 'refused', 'abandoned', 'parked', 'growing'] as const;
export type BurdenName = (typeof BURDENS)[number];

const WORDS: Readonly<Record<BurdenName, string>> = {
  ordinary: 'ordinary requests',
  refused: 'prompts beyond what is advertised',
  abandoned: 'long prompts whose client leaves',
  parked: 'streams that nobody reads on',
  growing: 'prompts whose answers grow to the end of the context',
};

/** Does what one tenant is refused, parks, abandons or lets grow cost another its service? */
export const starve: Experiment = {
  name: 'starve',
  required: true,
  method: {
    does: "One tenant's small requests are sent beside four kinds of burden of another: prompts beyond what is advertised, long prompts whose client leaves, streams that nobody reads on, and answers that grow to the end of the context.",
    control: 'The same small requests beside the same number of ordinary requests of the other tenant.',
    tells:
      'Whether the small requests still get their first token: starved is an error, or none within 20 s or five times the slowest of the control, whichever is more, in 3 of 20 trials.',
    limits:
      'A service that gets slower is reported and is not starvation; what fills up over minutes or hours is not seen in one run.',
  },

  unfit(lab) {
    if (lab.target.tenants.length < 2) return 'it needs two tenants, and one was given';
    return lab.options.budget.limits.together < 2 ? 'it needs two requests open at once' : null;
  },

  plan(lab): ExperimentPlan {
    const answer = (name: BurdenName): number => (stays(name) ? contextOf(lab) : ORDINARY_ANSWER_TOKENS);
    const each = BURDENS.reduce((sum, name) => sum + (burdenTokens(lab, name) + answer(name)) * besideOf(lab, name), 0);
    return {
      requests: BURDENS.reduce((sum, name) => sum + TRIALS * (1 + besideOf(lab, name)), 0),
      tokens: TRIALS * (each + BURDENS.length * ORDINARY_TOKENS),
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const endMs = lab.clock.nowMs() + TOTAL_MS;
    const control = await new Arm(lab, 'ordinary', FIRST_TOKEN_MS, endMs).run();
    const deadlineMs = Math.max(FIRST_TOKEN_MS, CONTROL_FACTOR * Math.max(0, ...control.firstMs));
    const arms: Arm[] = [];
    if (isJudged(control)) {
      for (const name of BURDENS) {
        if (name === 'ordinary' || arms.some((arm) => arm.starved.length >= STARVED)) continue;
        arms.push(await new Arm(lab, name, deadlineMs, endMs).run());
      }
    }
    return judge(lab, control, arms, deadlineMs);
  },
};

function contextOf(lab: Lab): number {
  return lab.knowledge.acceptLimit ?? lab.knowledge.advertised ?? CONTEXT_DEFAULT;
}

function overTokens(lab: Lab, i: number): number {
  return Math.ceil(contextOf(lab) * OVER[i % OVER.length]!) + 1;
}

/** Tokens of prompt of one request of a burden, at most. */
function burdenTokens(lab: Lab, name: BurdenName): number {
  if (name === 'refused') return overTokens(lab, OVER.length - 1);
  if (name === 'abandoned') return Math.min(ABANDONED_TOKENS_MAX, Math.floor(contextOf(lab) * 0.8));
  if (name === 'growing') return Math.floor(contextOf(lab) * GROWING_SHARE);
  return Math.min(ORDINARY_TOKENS, Math.floor(contextOf(lab) / 4));
}

function besideOf(lab: Lab, name: BurdenName): number {
  const wanted = name === 'growing' ? GROWING_BESIDE : BESIDE;
  const places = Math.min(wanted, lab.options.budget.limits.together - 1);
  if (name !== 'refused') return places;
  return Math.max(1, Math.min(places, Math.floor(OVER_TOKENS_MAX / (TRIALS * overTokens(lab, 0)))));
}

/** Whether its requests stay open from one trial to the next. */
function stays(name: BurdenName): boolean {
  return name === 'parked' || name === 'growing';
}

/** Twenty small requests of the one tenant beside one burden of the other. */
class Arm {
  readonly name: BurdenName;
  /** Milliseconds to the first token, or to a whole answer where nothing streams. */
  readonly firstMs: number[] = [];
  readonly starved: string[] = [];
  throttled = 0;
  /** Outcomes of the burden's requests. */
  readonly burden = new Map<string, number>();
  burdenThrottled = 0;
  readonly #lab: Lab;
  readonly #deadlineMs: number;
  readonly #endMs: number;
  readonly #heavy: ProbeTenant;
  readonly #small: ProbeTenant;
  readonly #open = new Set<Promise<void>>();
  #failed: unknown = null;
  #tell: () => void = () => {};
  /** What the burden's requests leave at; a new one for each round of them. */
  #told: Promise<void> = Promise.resolve();

  constructor(lab: Lab, name: BurdenName, deadlineMs: number, endMs: number) {
    this.name = name;
    this.#lab = lab;
    this.#deadlineMs = deadlineMs;
    this.#endMs = endMs;
    this.#heavy = lab.tenant(0);
    this.#small = lab.tenant(1);
  }

  get trials(): number {
    return this.firstMs.length + this.starved.length;
  }

  async run(): Promise<this> {
    this.#newRound();
    try {
      for (let i = 0; i < TRIALS && this.starved.length < STARVED && this.#lab.clock.nowMs() < this.#endMs; i++) {
        this.#fill(i);
        await this.#trial();
        if (this.#failed !== null) break;
        if (stays(this.name)) await this.#lab.sleep(PAUSE_MS);
        else await this.#endRound();
      }
    } finally {
      this.#tell();
      await Promise.all(this.#open);
    }
    if (this.#failed !== null) throw this.#failed;
    return this;
  }

  #newRound(): void {
    this.#told = new Promise((resolve) => {
      this.#tell = resolve;
    });
  }

  /** Gives the burden a while to end by itself, then leaves. */
  async #endRound(): Promise<void> {
    const timer = this.#lab.clock.after(GRACE_MS, this.#tell);
    await Promise.all(this.#open);
    timer.cancel();
    if (this.#failed !== null) throw this.#failed;
    this.#newRound();
  }

  /** As many requests of the burden as are missing. */
  #fill(trial: number): void {
    const count = besideOf(this.#lab, this.name);
    for (let i = 0; this.#open.size < count && i < count; i++) {
      const sending: Promise<void> = this.#burdenRequest(trial * count + i)
        .then((answer) => this.#noteBurden(answer))
        .catch((thrown: unknown) => {
          this.#failed ??= thrown;
        })
        .finally(() => this.#open.delete(sending));
      this.#open.add(sending);
    }
  }

  #noteBurden({ outcome, status }: Answer): void {
    const isThrottled = outcome === 'refused' && status === 429;
    if (isThrottled) this.burdenThrottled++;
    const name = isThrottled ? 'answered with 429' : outcome;
    this.burden.set(name, (this.burden.get(name) ?? 0) + 1);
  }

  #burdenRequest(i: number): Promise<Answer> {
    const lab = this.#lab;
    const tokens = this.name === 'refused' ? overTokens(lab, i) : burdenTokens(lab, this.name);
    const lasts = stays(this.name);
    return lab.ask({
      tenant: this.#heavy,
      prompt: this.#longPrompt(tokens),
      maxTokens: lasts ? Math.max(1, contextOf(lab) - tokens - 1) : ORDINARY_ANSWER_TOKENS,
      stream: lasts && lab.knowledge.streams,
      // Whoever is told to leave does so; this is for when nobody tells.
      deadlineMs: TOTAL_MS,
      leave: this.#leave(),
      returns429: true,
    });
  }

  /** Full of a code of its tenant, at most `tokens` long but where it has to be longer than that. */
  #longPrompt(tokens: number): string {
    const { chance, knowledge } = this.#lab;
    const needle = { name: newName(chance), code: this.#lab.marker(this.#heavy) };
    const line = stated(needle);
    const characters = Math.ceil(tokens * (knowledge.codeCharactersPerToken ?? CHARACTERS_PER_TOKEN));
    const lines = (characters - asked(needle).length) / line.length;
    const whole = this.name === 'refused' ? Math.ceil(lines) : Math.floor(lines);
    return line.repeat(Math.max(1, whole)) + asked(needle);
  }

  #leave(): Leave {
    const { chance, knowledge } = this.#lab;
    if (this.name !== 'abandoned') {
      return { when: this.#told, reads: this.name === 'parked' ? 1 : Number.POSITIVE_INFINITY };
    }
    const smallMs = Math.max(2, Math.min(1000, knowledge.smallMs ?? 20));
    return { afterMs: chance.between(1, Math.ceil(smallMs * chance.pick([2, 8, 30]))) };
  }

  async #trial(): Promise<void> {
    const lab = this.#lab;
    const needle = { name: newName(lab.chance), code: lab.marker(this.#small) };
    const answer = await lab.ask({
      tenant: this.#small,
      prompt: `Notes.${stated(needle)}${asked(needle)}`,
      maxTokens: this.name === 'growing' && lab.knowledge.streams ? SMALL_TOKENS_LASTING : SMALL_TOKENS,
      stream: lab.knowledge.streams,
      deadlineMs: this.#deadlineMs,
      returns429: true,
    });
    if (answer.outcome === 'refused' && answer.status === 429) {
      this.throttled++;
      await lab.sleep(Math.min(BACK_OFF_MS_MAX, (answer.retryAfterS ?? 1) * 1000));
    } else if (isServed(answer)) {
      this.firstMs.push(answer.firstTextMs ?? answer.endMs - answer.sentMs);
    } else {
      this.starved.push(`${answer.id} ${answer.status === null ? '' : `${answer.status} `}${answer.outcome}`);
    }
  }
}

/** A first token came, or a whole answer without any. */
function isServed({ outcome, firstTextMs }: Answer): boolean {
  return outcome === 'answered' || (outcome === 'silent' && firstTextMs !== null);
}

function judge(lab: Lab, control: Arm, arms: readonly Arm[], deadlineMs: number): ExperimentResult {
  const starves = arms.filter((arm) => arm.starved.length >= STARVED);
  const trials = arms.reduce((sum, arm) => sum + arm.trials, 0);
  const starved = arms.reduce((sum, arm) => sum + arm.starved.length, 0);
  const bound = upperBound(starved, trials, CONFIDENCE);
  const powerless = !isJudged(control) || arms.length < BURDENS.length - 1 || arms.some(isWithoutPower);
  return {
    name: 'starve',
    verdict: lab.hits.length > 0 ? 'leaks' : starves.length > 0 ? 'starves' : powerless ? 'no-power' : 'isolated',
    sent: lab.answers,
    hits: lab.hits.length > 0 ? lab.hits.length : starved,
    bound,
    control: sentence(control),
    evidence: [
      ...arms.map(sentence),
      ...arms.filter(isWithoutPower).map(({ name }) => `Beside ${WORDS[name]} there was too little to judge.`),
      `Starved is ${STARVED} of ${TRIALS} trials with an error, or without a first token within ${Math.round(deadlineMs / 1000)} s; ${starved} of ${trials} were.`,
    ],
    figures: {
      deadlineMs,
      ...Object.fromEntries([control, ...arms].map(({ name, firstMs }) => [`${name}FirstMs`, firstMs])),
    },
  };
}

/** The small requests are served beside ordinary ones, often enough to say how fast. */
function isJudged(control: Arm): boolean {
  return control.starved.length < STARVED && control.trials >= TRIALS / 2;
}

/** Most of its trials, or of its burden, met a limit of rates. */
function isWithoutPower(arm: Arm): boolean {
  const burden = [...arm.burden.values()].reduce((a, b) => a + b, 0);
  if (arm.starved.length >= STARVED) return false;
  return arm.trials <= TRIALS - STARVED || arm.burdenThrottled > burden * THROTTLED_SHARE_MAX;
}

function sentence(arm: Arm): string {
  const sorted = [...arm.firstMs].sort((a, b) => a - b);
  const ms = (value: number | undefined): string => (value === undefined ? 'none' : `${Math.round(value)} ms`);
  const times =
    sorted.length === 0
      ? ''
      : `, the first token after ${ms(sorted[sorted.length >> 1])}, at most ${ms(sorted.at(-1))}`;
  const starved = arm.starved.length === 0 ? '' : `; not served: ${arm.starved.join(', ')}`;
  const throttled = arm.throttled === 0 ? '' : `; ${arm.throttled} answered with 429 and not counted`;
  const burden = [...arm.burden].map(([name, count]) => `${count} ${name}`).join(', ');
  return `Beside ${WORDS[arm.name]} (${burden}), ${arm.firstMs.length} of ${arm.trials} small requests were served${times}${starved}${throttled}.`;
}
