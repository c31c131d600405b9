import type { Answer } from '../answer.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { quantile } from '../stats/describe.js';
import { cliffsDelta, ksTest } from '../stats/ranks.js';
import { nominalAlphas } from '../stats/sequential.js';
import { smallestVisibleShift } from '../stats/shift.js';
import type { ProbeTenant } from '../target.js';

/** Each block has a new prompt of the first tenant, then one hit and one miss of either arm. */
const BLOCKS = 24;
/** Blocks after which the samples are looked at; the first looks can only stop a run whose samples are wholly apart. */
const LOOKS: readonly number[] = [12, 16, 20, 24];
/** Of each kind, below which nothing is said. */
const VALUES_MIN = 8;
const PER_BLOCK = 5;
/** Of them, those that nothing can be cached of. */
const LONG_PER_BLOCK = 4;
/** Chance, over all looks together, that times look shared where they are not. */
const ALPHA = 0.001;
const POWER = 0.8;
const PERMUTATIONS = 19_999;
const RESAMPLES = 200;
/** How long all long prompts together should take, in milliseconds; prompts are made as long as that allows. */
const SPEND_MS = 14_000;
const TOKENS_MIN = 1024;
const TOKENS_MAX = 4096;
const TOKENS_LEAST = 128;
const PILOT_TOKENS = 512;
/** Prompts of a block that must lie in the pool together, lest the first is evicted before it is repeated. */
const TOGETHER = 4;
const LIMIT_DEFAULT = 4096;
/** Low guess, for endpoints that do not count. */
const CHARACTERS_PER_TOKEN = 2;
const CACHED_SHARE_MIN = 0.9;
const REPORTED_SHARE = 0.5;
const DEADLINE_MS = 30_000;
const RETRIES = 3;
const RETRY_MS_MAX = 10_000;
const TOO_MANY_REQUESTS = 429;

/** What one tenant met: on prompts that the first tenant had sent before, and on prompts that nobody had. */
export interface TimingArm {
  /** Milliseconds to the first byte of the body. */
  readonly hitMs: number[];
  readonly missMs: number[];
  /** Answers whose usage said that nearly all of the prompt was cached. */
  hitsReported: number;
  missesReported: number;
}

export interface TimingChannel {
  readonly statistic: number;
  readonly pValue: number;
  /** Below this p-value the look said yes. */
  readonly level: number;
  readonly fires: boolean;
}

/** Is a prefix that one tenant sent cheaper for another? */
export const prefixTiming: Experiment = {
  name: 'prefix-timing',
  required: true,
  method: {
    does: 'One tenant sends long random prompts; another sends the same ones (hits) and ones that nobody sent (misses), in random order, with one token of answer. The times to the first byte are compared with a one-sided Kolmogorov-Smirnov test whose p-value is taken from permutations, at four looks that spend one level together; beside it, what `cached_tokens` says.',
    control:
      'The first tenant sends its own prompts again, in the same random order: that must be seen as cached, or no cache was seen and nothing is said.',
    tells: 'Whether one tenant can learn from a time, or from a count, that another sent a text.',
    limits:
      'A shared cache that saves less than the smallest visible shift is not seen, nor one that was emptied between a prompt and its repetition; only what the first tenant sent is tried.',
  },

  unfit(lab) {
    if (lab.target.tenants.length < 2) return 'it needs two tenants, and one was given';
    return tokensMax(lab) < TOKENS_LEAST ? `the context is too short for prompts of ${TOKENS_LEAST} tokens` : null;
  },

  plan(lab): ExperimentPlan {
    const requests = BLOCKS * PER_BLOCK + 1;
    return { requests, tokens: requests * (tokensMax(lab) + 1), seconds: null };
  },

  async run(lab): Promise<ExperimentResult> {
    const trials = new Trials(lab);
    if (!(await trials.begin())) return noPower(lab, 'A prompt of the control was not answered.');
    const levels = nominalAlphas(
      ALPHA,
      LOOKS.map((blocks) => blocks / BLOCKS),
    );
    let seen: TimingChannel | null = null;
    for (let block = 1; block <= BLOCKS; block++) {
      await trials.block(lab.tenant(1 + (block % (lab.target.tenants.length - 1))));
      const look = LOOKS.indexOf(block);
      if (look < 0) continue;
      seen = timesOf(lab, trials.cross, levels[look]!);
      if (seen?.fires === true || countsFire(trials.cross)) break;
    }
    return judge(lab, trials, seen);
  },
};

function tokensMax(lab: Lab): number {
  const { acceptLimit, advertised, pool } = lab.knowledge;
  const limit = Math.min(acceptLimit ?? advertised ?? LIMIT_DEFAULT, pool ?? Infinity);
  return Math.min(TOKENS_MAX, Math.floor(limit / TOGETHER));
}

class Trials {
  readonly cross: TimingArm = { hitMs: [], missMs: [], hitsReported: 0, missesReported: 0 };
  readonly control: TimingArm = { hitMs: [], missMs: [], hitsReported: 0, missesReported: 0 };
  /** Answers that were none. */
  failed = 0;
  /** Of the last prompt, as the endpoint counts; null: it does not. */
  promptTokens: number | null = null;
  readonly #lab: Lab;
  /** The first prompt whose repetition by another tenant was counted as cached, and that repetition. */
  example: { readonly first: string; readonly repeated: string } | null = null;
  #characters = 0;

  constructor(lab: Lab) {
    this.#lab = lab;
  }

  /** Measures how fast the endpoint reads and how many characters a token of such text has. False: no answer. */
  async begin(): Promise<boolean> {
    const lab = this.#lab;
    const most = tokensMax(lab);
    const perToken = lab.knowledge.codeCharactersPerToken ?? CHARACTERS_PER_TOKEN;
    const pilotCharacters = Math.floor(Math.min(PILOT_TOKENS, most) * perToken);
    const pilot = await this.#send(lab.tenant(0), randomText(lab, pilotCharacters));
    if (pilot.outcome !== 'answered' || pilot.firstByteMs === null) return false;
    const counted = pilot.usage?.promptTokens ?? pilotCharacters / perToken;
    const eachMs = SPEND_MS / (BLOCKS * LONG_PER_BLOCK);
    const affordable = Math.floor((counted * eachMs) / Math.max(pilot.firstByteMs, 1));
    const tokens = Math.min(most, Math.max(TOKENS_MIN, affordable));
    this.#characters = Math.floor((tokens * pilotCharacters) / Math.max(counted, 1));
    return true;
  }

  /** The first tenant sends a prompt; then come a hit and a miss of either arm, in random order. */
  async block(other: ProbeTenant): Promise<void> {
    const lab = this.#lab;
    const first = lab.tenant(0);
    const fresh = (): string => randomText(lab, this.#characters);
    const prompt = fresh();
    const sent = await this.#send(first, prompt);
    if (sent.outcome !== 'answered') {
      this.failed++;
      return;
    }
    const steps = lab.chance.shuffle([
      () => this.#trial(this.control, first, prompt, sent.id),
      () => this.#trial(this.control, first, fresh(), null),
      () => this.#trial(this.cross, other, prompt, sent.id),
      () => this.#trial(this.cross, other, fresh(), null),
    ]);
    for (const step of steps) await step();
  }

  /** `before`: the request that sent this prompt first; null: none did. */
  async #trial(arm: TimingArm, tenant: ProbeTenant, prompt: string, before: string | null): Promise<void> {
    const answer = await this.#send(tenant, prompt);
    if (answer.outcome !== 'answered' || answer.firstByteMs === null) {
      this.failed++;
      return;
    }
    (before === null ? arm.missMs : arm.hitMs).push(answer.firstByteMs);
    this.promptTokens = answer.usage?.promptTokens ?? null;
    if (!saysCached(answer)) return;
    if (before === null) arm.missesReported++;
    else arm.hitsReported++;
    if (arm === this.cross && before !== null) this.example ??= { first: before, repeated: answer.id };
  }

  async #send(tenant: ProbeTenant, prompt: string): Promise<Answer> {
    const lab = this.#lab;
    for (let tried = 1; ; tried++) {
      const answer = await lab.ask({
        returns429: true,
        tenant,
        prompt,
        maxTokens: 1,
        stream: lab.knowledge.streams,
        deadlineMs: DEADLINE_MS,
      });
      if (answer.status !== TOO_MANY_REQUESTS || tried > RETRIES) return answer;
      await lab.sleep(Math.min(RETRY_MS_MAX, 1000 * Math.max(answer.retryAfterS ?? 1, 0.1)));
    }
  }
}

function saysCached({ usage }: Answer): boolean {
  return (
    usage !== null &&
    usage.cachedTokens !== null &&
    usage.cachedTokens > CACHED_SHARE_MIN * Math.max(1, usage.promptTokens)
  );
}

/** Words of letters drawn by chance: no beginning of it was ever sent before. */
function randomText(lab: Lab, characters: number): string {
  const codes = new Uint8Array(characters);
  let left = lab.chance.between(3, 9);
  for (let i = 0; i < characters; i++) {
    const isGap = left-- === 0;
    if (isGap) left = lab.chance.between(3, 9);
    codes[i] = isGap ? 0x20 : 0x61 + lab.chance.below(26);
  }
  return Buffer.from(codes).toString('latin1');
}

/** Whether the counts say that what was sent before was cached, and what was not was not. */
export function countsFire(arm: TimingArm): boolean {
  return (
    arm.hitsReported > REPORTED_SHARE * arm.hitMs.length && !(arm.missesReported > REPORTED_SHARE * arm.missMs.length)
  );
}

function timesOf(lab: Lab, arm: TimingArm, level: number): TimingChannel | null {
  if (arm.hitMs.length === 0 || arm.missMs.length === 0) return null;
  const { statistic, pValue } = ksTest(arm.hitMs, arm.missMs, PERMUTATIONS, lab.chance.fork());
  return { statistic, pValue, level, fires: pValue <= level };
}

/** `seen`: what the last look at the times of the others said; null: there was nothing to look at. */
function judge(lab: Lab, trials: Trials, seen: TimingChannel | null): ExperimentResult {
  const { cross, control } = trials;
  const level = seen?.level ?? ALPHA;
  const own = timesOf(lab, control, level);
  const { failed } = trials;
  const least = Math.min(cross.hitMs.length, cross.missMs.length, control.hitMs.length, control.missMs.length);
  if (seen === null || own === null || least < VALUES_MIN)
    return noPower(lab, `${failed} requests got no answer, and ${least} of a kind are too few to compare.`);
  const controlShift = quantile(control.missMs, 0.5) - quantile(control.hitMs, 0.5);
  const visible = smallestVisibleShift(cross.hitMs, cross.missMs, {
    alpha: level,
    power: POWER,
    permutations: PERMUTATIONS,
    resamples: RESAMPLES,
    seed: lab.chance.u32(),
  });
  const shares = seen.fires || countsFire(cross);
  // Times can tell only where the saving of a shared cache, as the control shows it, would have been seen.
  const timesTell = own.fires && visible !== null && visible <= controlShift;
  const tells = timesTell || countsFire(control);
  return {
    name: 'prefix-timing',
    verdict: shares || lab.hits.length > 0 ? 'leaks' : tells ? 'isolated' : own.fires ? 'no-power' : 'no-cache-seen',
    sent: lab.answers,
    hits: Math.max(lab.hits.length, shares ? Math.max(cross.hitsReported, seen.fires ? cross.hitMs.length : 0) : 0),
    bound: null,
    control: controlWords(control, own, controlShift),
    evidence: [
      `Of ${trials.promptTokens ?? 'uncounted'} tokens each, ${timesWords(cross, seen)}.`,
      countsWords(cross) +
        (trials.example === null ? '' : ` The first was ${trials.example.repeated}, after ${trials.example.first}.`),
      visible === null
        ? 'So few times can not show any shift.'
        : `A shift of ${visible.toFixed(1)} ms would have been seen in ${POWER * 100} % of such runs.`,
      ...(failed === 0 ? [] : [`${failed} requests got no answer and are left out.`]),
    ],
    figures: {
      crossHitMs: [...cross.hitMs],
      crossMissMs: [...cross.missMs],
      controlHitMs: [...control.hitMs],
      controlMissMs: [...control.missMs],
      crossStatistic: seen.statistic,
      crossP: seen.pValue,
      crossDelta: cliffsDelta(cross.hitMs, cross.missMs),
      controlP: own.pValue,
      controlDelta: cliffsDelta(control.hitMs, control.missMs),
      controlShiftMs: controlShift,
      level,
      crossHitsReported: cross.hitsReported,
      crossMissesReported: cross.missesReported,
      controlHitsReported: control.hitsReported,
      ...(visible === null ? {} : { visibleShiftMs: visible }),
      ...(trials.promptTokens === null ? {} : { promptTokens: trials.promptTokens }),
    },
  };
}

function timesWords(arm: TimingArm, { statistic, pValue, level }: TimingChannel): string {
  const [hit, miss] = [quantile(arm.hitMs, 0.5), quantile(arm.missMs, 0.5)];
  return (
    `${arm.hitMs.length} prompts that were sent before began after ${hit.toFixed(1)} ms (median), ${arm.missMs.length} new ones after ${miss.toFixed(1)} ms: ` +
    `D+ = ${statistic.toFixed(2)}, p = ${pValue.toPrecision(2)} (alarm from ${level.toPrecision(2)} down), Cliff's delta ${cliffsDelta(arm.hitMs, arm.missMs).toFixed(2)}`
  );
}

function countsWords(arm: TimingArm): string {
  return `\`cached_tokens\` gave over ${CACHED_SHARE_MIN * 100} % of the prompt for ${arm.hitsReported} of ${arm.hitMs.length} that another tenant had sent, and for ${arm.missesReported} of ${arm.missMs.length} new ones.`;
}

function controlWords(control: TimingArm, own: TimingChannel, shiftMs: number): string {
  const counts = `\`cached_tokens\` said so for ${control.hitsReported} of ${control.hitMs.length}`;
  if (!own.fires && !countsFire(control))
    return `No cache seen: the first tenant's own ${timesWords(control, own)}; ${counts}.`;
  return `The first tenant's own prompts came ${shiftMs.toFixed(1)} ms sooner when sent again (p = ${own.pValue.toPrecision(2)}); ${counts}.`;
}

function noPower(lab: Lab, why: string): ExperimentResult {
  return {
    name: 'prefix-timing',
    verdict: lab.hits.length > 0 ? 'leaks' : 'no-power',
    sent: lab.answers,
    hits: lab.hits.length,
    bound: null,
    control: why,
    evidence: [],
  };
}
