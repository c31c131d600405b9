import type { Answer } from '../answer.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { asked, type Needle, newName, stated } from '../recall.js';
import { inTurn, judgeRecall, RecallArm } from '../recall-arm.js';
import type { ProbeTenant } from '../target.js';

/** Prompts before the restart, as control. */
const QUIET = 24;
/** Prompts that are kept in flight until the node is gone, with a rest between; the last of them are asked again afterwards. */
const IN_FLIGHT = 6;
const REST_MS = 400;
const LOAD_MAX = 2048;
const LAST = 16;
/** Enough answers, from either side, for the bound. */
const AGAIN = 36;
const TOGETHER = 6;
const ANSWER_TOKENS = 48;
const PROMPT_TOKENS_MAX = 1024;
const LIMIT_DEFAULT = 4096;
const CHARACTERS_PER_TOKEN = 2;
const DEADLINE_MS = 30_000;
const CHECK_DEADLINE_MS = 5_000;
const CHECK_EACH_MS = 200;
/** Checks in a row that are answered, after which the node counts as back. */
const STEADY = 5;
/** How long the operator has, and how long the node. */
const GONE_WITHIN_MS = 180_000;
const BACK_WITHIN_MS = 300_000;
const SERVER_ERROR = 500;

interface Planted {
  readonly tenant: ProbeTenant;
  readonly needle: Needle;
  readonly prompt: string;
}

/** Does anything of what was in flight when a node was restarted stand in what others read afterwards? */
export const restart: Experiment = {
  name: 'restart',
  required: false,
  method: {
    does: "Keeps long prompts full of one tenant's markers in flight, asks the operator to restart a node, waits until the endpoint answers again, then sends the same tenant its prompts again and the others the beginnings of them. Every answer is searched for the markers of everyone else.",
    control: 'Prompts before the restart must give their codes back.',
    tells: 'Whether pages, handles and addresses from before a restart are used after it for somebody else.',
    limits: 'It sees the restart only as requests that fail; what was restarted is known to the operator alone.',
  },

  unfit(lab) {
    if (lab.target.tenants.length < 2) return 'it needs two tenants, and one was given';
    return lab.options.interactive === true ? null : 'nobody is there to restart a node: it needs a terminal';
  },

  plan(lab): ExperimentPlan {
    const requests = QUIET + LOAD_MAX + AGAIN * 2;
    const checks = Math.ceil((GONE_WITHIN_MS + BACK_WITHIN_MS) / CHECK_EACH_MS);
    return {
      requests: requests + checks,
      tokens: requests * (promptTokens(lab) + ANSWER_TOKENS) + checks,
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const [quiet, after] = [new RecallArm(), new RecallArm()];
    const before = Array.from({ length: QUIET }, (_, i) => newPlanted(lab, lab.tenant(i)));
    await inTurn(before, TOGETHER, async (each) => quiet.note(await send(lab, each.tenant, each.prompt), each.needle));
    const load = new Load(lab);
    const loading = load.run();
    lab.options.say(`restart: restart one node now; it is waited for ${GONE_WITHIN_MS / 1000} s`);
    const isGone = await untilGone(lab, load).finally(() => load.end());
    if (!isGone) return couldNot(lab, `no request failed within ${GONE_WITHIN_MS / 1000} s, so nothing was restarted`);
    lab.options.say('restart: a request failed; waiting until the endpoint answers again');
    const isBack = await untilBack(lab);
    await loading;
    if (!isBack) return couldNot(lab, `the endpoint did not answer again within ${BACK_WITHIN_MS / 1000} s`);
    lab.options.say('restart: the endpoint answers again');
    const last = load.planted.slice(-LAST);
    const again = Array.from({ length: AGAIN }, (_, i) => last[i % last.length]!);
    let others = 0;
    await inTurn(again, TOGETHER, async ({ tenant, needle, prompt }) => {
      const rest = lab.target.tenants.filter((each) => each !== tenant);
      const isOthers = (await send(lab, lab.chance.pick(rest), `Notes.${asked(needle)}`)).outcome === 'answered';
      if (isOthers) others++;
      after.note(await send(lab, tenant, prompt), needle);
    });
    return judgeRecall(lab, {
      name: 'restart',
      quiet,
      after,
      searched: after.answered + others,
      quietWords: 'before the restart',
      afterWords: 'after it',
      evidence: [
        `${load.planted.length} long prompts were sent while the restart was waited for, ${load.failed} of them got no whole answer; the last ${last.length} were asked again.`,
      ],
    });
  },
};

function promptTokens(lab: Lab): number {
  const { acceptLimit, advertised } = lab.knowledge;
  return Math.min(PROMPT_TOKENS_MAX, Math.floor(((acceptLimit ?? advertised ?? LIMIT_DEFAULT) - ANSWER_TOKENS) * 0.8));
}

function newPlanted(lab: Lab, tenant: ProbeTenant): Planted {
  const needle: Needle = { name: newName(lab.chance), code: lab.marker(tenant) };
  const line = stated(needle);
  const characters = Math.floor(promptTokens(lab) * (lab.knowledge.codeCharactersPerToken ?? CHARACTERS_PER_TOKEN));
  const lines = Math.max(1, Math.floor(characters / line.length) - 1);
  return { tenant, needle, prompt: line.repeat(lines) + asked(needle) };
}

function send(lab: Lab, tenant: ProbeTenant, prompt: string): Promise<Answer> {
  return lab.ask({ tenant, prompt, maxTokens: ANSWER_TOKENS, stream: false, deadlineMs: DEADLINE_MS });
}

/** A node that is gone: no connection, an answer that broke off, silence, or an error of the server. */
function isBroken({ outcome, status }: Answer): boolean {
  return outcome !== 'answered' && (outcome !== 'refused' || status === null || status >= SERVER_ERROR);
}

/** Long prompts of one tenant, always some of them in flight. */
class Load {
  readonly planted: Planted[] = [];
  failed = 0;
  readonly #lab: Lab;
  #ended = false;

  constructor(lab: Lab) {
    this.#lab = lab;
  }

  end(): void {
    this.#ended = true;
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: IN_FLIGHT }, () => this.#one()));
  }

  async #one(): Promise<void> {
    const lab = this.#lab;
    while (!this.#ended && this.planted.length < LOAD_MAX) {
      const each = newPlanted(lab, lab.tenant(0));
      this.planted.push(each);
      const answer = await send(lab, each.tenant, each.prompt);
      if (isBroken(answer)) this.failed++;
      await lab.sleep(REST_MS);
    }
  }
}

function check(lab: Lab): Promise<Answer> {
  const prompt = 'Say yes.';
  return lab.ask({ tenant: lab.tenant(1), prompt, maxTokens: 1, stream: false, deadlineMs: CHECK_DEADLINE_MS });
}

async function untilGone(lab: Lab, load: Load): Promise<boolean> {
  const endMs = lab.clock.nowMs() + GONE_WITHIN_MS;
  while (lab.clock.nowMs() < endMs) {
    if (isBroken(await check(lab)) || load.failed > 0) return true;
    await lab.sleep(CHECK_EACH_MS);
  }
  return false;
}

async function untilBack(lab: Lab): Promise<boolean> {
  const endMs = lab.clock.nowMs() + BACK_WITHIN_MS;
  let steady = 0;
  while (lab.clock.nowMs() < endMs) {
    steady = (await check(lab)).outcome === 'answered' ? steady + 1 : 0;
    if (steady === STEADY) return true;
    await lab.sleep(CHECK_EACH_MS);
  }
  return false;
}

function couldNot(lab: Lab, why: string): ExperimentResult {
  return {
    name: 'restart',
    verdict: lab.hits.length > 0 ? 'leaks' : 'could-not-run',
    sent: lab.answers,
    hits: lab.hits.length,
    bound: null,
    control: `not judged: ${why}`,
    evidence: [],
  };
}
