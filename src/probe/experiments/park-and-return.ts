import type { Answer } from '../answer.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import type { Lab } from '../lab.js';
import { asked, type Needle, newName, stated } from '../recall.js';
import { inTurn, judgeRecall, RecallArm } from '../recall-arm.js';
import type { ProbeTenant } from '../target.js';

const ROUNDS = 8;
const SESSIONS = 8;
const TOGETHER = 6;
/** Of a session's first turn; it is the beginning of the later ones. */
const SESSION_TOKENS_MAX = 2048;
const ANSWER_TOKENS = 48;
const FIRST_ANSWER_TOKENS = 8;
/** What the later turns add. */
const TURN_TOKENS = 160;
const LIMIT_DEFAULT = 4096;
/** How much others send while sessions are parked: of the pool, or of the advertised context where no pool is known. */
const CHURN_OF_POOL = 1.5;
const CHURN_OF_CONTEXT = 6;
const CHURN_TOKENS_MAX = 262_144;
const CHARACTERS_PER_TOKEN = 2;
const DEADLINE_MS = 60_000;

interface Session {
  readonly needle: Needle;
  /** All that was said so far. */
  text: string;
}

/** Do conversations that rest while others fill the pool go on as their own? */
export const parkAndReturn: Experiment = {
  name: 'park-and-return',
  required: false,
  method: {
    does: "One tenant begins long conversations and lets them rest; the others send more than the pool holds, full of their own markers; then the conversations go on and ask for their own code. Every answer of either is searched for the others' markers.",
    control: 'Each conversation is gone on with once before it rests, and must give its code back.',
    tells: 'Whether pages that are kept for a conversation are still its own when it returns.',
    limits:
      'Where the pool is larger than what the others sent, nothing was pushed out; the size is known only where an engine was named.',
  },

  unfit(lab) {
    if (lab.target.tenants.length < 2) return 'it needs two tenants, and one was given';
    return sessionTokens(lab) < TURN_TOKENS ? 'the context is too short for a conversation' : null;
  },

  plan(lab): ExperimentPlan {
    const churn = churnPrompts(lab);
    const session = sessionTokens(lab);
    const turns = 3 * session + 2 * (TURN_TOKENS + ANSWER_TOKENS) + FIRST_ANSWER_TOKENS;
    return {
      requests: ROUNDS * (3 * SESSIONS + churn),
      tokens: ROUNDS * (SESSIONS * turns + churn * (churnTokens(lab) + ANSWER_TOKENS)),
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const [quiet, after, others] = [new RecallArm(), new RecallArm(), new RecallArm()];
    for (let round = 0; round < ROUNDS && lab.hits.length < 3; round++) {
      const tenant = lab.tenant(round);
      const sessions = Array.from({ length: SESSIONS }, () => newSession(lab, tenant));
      await inTurn(sessions, TOGETHER, (session) => begin(lab, tenant, session));
      await inTurn(sessions, TOGETHER, (session) => goOn(lab, tenant, session, quiet));
      await churn(lab, tenant, others);
      await inTurn(sessions, TOGETHER, (session) => goOn(lab, tenant, session, after));
    }
    return judgeRecall(lab, {
      name: 'park-and-return',
      quiet,
      after,
      searched: quiet.answered + after.answered + others.answered,
      quietWords: 'before their conversations rested',
      afterWords: 'after others had filled the pool',
      evidence: [
        `While conversations of ${sessionTokens(lab)} tokens rested, the others sent ${churnPrompts(lab) * churnTokens(lab)} tokens a round; the pool ${poolWords(lab)}.`,
        `${others.recalled} of the others' ${others.answered} prompts got their own code back.`,
      ],
    });
  },
};

function poolWords({ knowledge }: Lab): string {
  return knowledge.pool === null ? 'is not known' : `holds ${knowledge.pool}`;
}

function limitOf({ knowledge }: Lab): number {
  return knowledge.acceptLimit ?? knowledge.advertised ?? LIMIT_DEFAULT;
}

/** Room is left for two more turns. */
function sessionTokens(lab: Lab): number {
  const room = limitOf(lab) - 2 * (TURN_TOKENS + ANSWER_TOKENS) - FIRST_ANSWER_TOKENS;
  return Math.min(SESSION_TOKENS_MAX, Math.floor(room * 0.6));
}

function churnTokens(lab: Lab): number {
  return Math.floor((limitOf(lab) - ANSWER_TOKENS) * 0.85);
}

function churnPrompts(lab: Lab): number {
  const { pool } = lab.knowledge;
  const all = pool === null ? CHURN_OF_CONTEXT * limitOf(lab) : CHURN_OF_POOL * pool;
  return Math.ceil(Math.min(CHURN_TOKENS_MAX, all) / churnTokens(lab));
}

function newSession(lab: Lab, tenant: ProbeTenant): Session {
  const needle: Needle = { name: newName(lab.chance), code: lab.marker(tenant) };
  const text = stated(needle);
  const tokens =
    sessionTokens(lab) - Math.ceil(text.length / (lab.knowledge.codeCharactersPerToken ?? CHARACTERS_PER_TOKEN));
  // Unmeasured, a piece is taken for one token.
  const filler = lab.knowledge.ruler?.filler ?? ' the';
  return { needle, text: `Notes of ${newName(lab.chance)}.${text}${filler.repeat(Math.max(0, tokens))}\n` };
}

async function begin(lab: Lab, tenant: ProbeTenant, session: Session): Promise<void> {
  const answer = await send(lab, tenant, session.text, FIRST_ANSWER_TOKENS);
  session.text += answer.content;
}

/** One more turn of the conversation, which asks for the code. */
async function goOn(lab: Lab, tenant: ProbeTenant, session: Session, arm: RecallArm): Promise<void> {
  session.text += asked(session.needle);
  const answer = await send(lab, tenant, session.text, ANSWER_TOKENS);
  arm.note(answer, session.needle);
  session.text += `${answer.content}\n`;
}

/** The others' prompts repeat their codes to the end, so that any page of theirs holds one. */
async function churn(lab: Lab, parked: ProbeTenant, arm: RecallArm): Promise<void> {
  const others = lab.target.tenants.filter((each) => each !== parked);
  const characters = Math.floor(churnTokens(lab) * (lab.knowledge.codeCharactersPerToken ?? CHARACTERS_PER_TOKEN));
  const prompts = Array.from({ length: churnPrompts(lab) }, (_, i) => others[i % others.length]!);
  await inTurn(prompts, TOGETHER, async (tenant) => {
    const needle: Needle = { name: newName(lab.chance), code: lab.marker(tenant) };
    const line = stated(needle);
    const lines = Math.max(1, Math.floor((characters - line.length) / line.length));
    arm.note(await send(lab, tenant, line.repeat(lines) + asked(needle), ANSWER_TOKENS), needle);
  });
}

function send(lab: Lab, tenant: ProbeTenant, prompt: string, maxTokens: number): Promise<Answer> {
  return lab.ask({ tenant, prompt, maxTokens, stream: false, deadlineMs: DEADLINE_MS });
}
