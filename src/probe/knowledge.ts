/** What is learned before the first experiment, with small requests only. */
import type { Answer } from './answer.js';
import type { Knowledge } from './lab.js';
import { calibrate, countedTokens } from './ruler.js';
import type { ProbeTarget } from './target.js';

/** As much of the lab as learning needs; its budget and record hold here too. */
export interface Learning {
  readonly target: ProbeTarget;
  /** Milliseconds on the run's clock, to see what a token costs. */
  readonly nowMs?: () => number;
  ask(ask: {
    tenant: ProbeTarget['tenants'][number];
    prompt: string;
    maxTokens: number;
    stream: boolean;
    deadlineMs: number;
  }): Promise<Answer>;
  plain(ask: {
    tenant: ProbeTarget['tenants'][number];
    method: 'GET';
    path: string;
    deadlineMs: number;
  }): Promise<Answer>;
}

export interface Told {
  /** What the operator says is advertised; null: it is read from `/v1/models`. */
  readonly advertised: number | null;
  readonly pool: number | null;
  readonly acceptLimit: number | null;
  readonly engine: string | null;
  readonly engineVersion: string | null;
  readonly nodes: readonly string[];
}

export const NOTHING_TOLD: Told = {
  advertised: null,
  pool: null,
  acceptLimit: null,
  engine: null,
  engineVersion: null,
  nodes: [],
};

/** Why the endpoint can not be probed at all; every sentence says what came. */
export class UnfitTarget extends Error {
  override readonly name = 'UnfitTarget';
}

/** Text as the markers' prompts have it, with no marker in it. */
const CODES = 'The code of hrwqzkta: mw-7gq2dpx4vaelhz5ktr3o.\n'.repeat(8);
const SMALL_DEADLINE_MS = 60_000;

/** Throws UnfitTarget where a tenant's smallest request gets no answer. */
export async function learn(learning: Learning, told: Told): Promise<Knowledge> {
  const { tenants } = learning.target;
  let smallMs = Number.POSITIVE_INFINITY;
  for (const tenant of tenants) {
    const answer = await learning.ask({
      tenant,
      prompt: 'Say yes.',
      maxTokens: 1,
      stream: false,
      deadlineMs: SMALL_DEADLINE_MS,
    });
    if (answer.outcome !== 'answered') throw new UnfitTarget(unanswered(tenant.name, answer));
    smallMs = Math.min(smallMs, answer.endMs - answer.sentMs);
  }
  const streamed = await learning.ask({
    tenant: tenants[0]!,
    prompt: 'Say yes.',
    maxTokens: 2,
    stream: true,
    deadlineMs: SMALL_DEADLINE_MS,
  });
  const models = await learning.plain({
    tenant: tenants[0]!,
    method: 'GET',
    path: '/v1/models',
    deadlineMs: SMALL_DEADLINE_MS,
  });
  const measure = async (prompt: string): Promise<number | null> =>
    countedTokens(
      await learning.ask({ tenant: tenants[0]!, prompt, maxTokens: 1, stream: false, deadlineMs: SMALL_DEADLINE_MS }),
    );
  const ruler = await calibrate(measure);
  const codesStartMs = learning.nowMs?.() ?? null;
  const codes = await measure(CODES);
  const codesMs = codesStartMs === null ? null : learning.nowMs!() - codesStartMs;
  const read = readAdvertised(models, learning.target.model);
  return {
    advertised: told.advertised ?? read,
    advertisedFrom: told.advertised !== null ? '--advertised' : read !== null ? '/v1/models' : null,
    pool: told.pool,
    acceptLimit: told.acceptLimit,
    engine: told.engine,
    engineVersion: told.engineVersion,
    nodes: told.nodes,
    ruler,
    codeCharactersPerToken: codes === null ? null : CODES.length / codes,
    streams: streamed.outcome === 'answered' && streamed.streamed === true && streamed.firstTextMs !== null,
    smallMs,
    tokenMs:
      codes === null || codesMs === null
        ? null
        : { least: Math.max(0, codesMs - smallMs) / codes, most: codesMs / codes },
  };
}

/** `max_model_len` of the model that is probed; answers of `/v1/models` hold it as a number, which is no string of the answer. */
function readAdvertised(answer: Answer, model: string): number | null {
  return answer.outcome === 'answered' ? (answer.models?.find((each) => each.id === model)?.maxModelLen ?? null) : null;
}

function unanswered(tenant: string, { outcome, status, error }: Answer): string {
  const kind = error === null ? '' : `, type ${error.type}, code ${error.code}`;
  return (
    `Expected the smallest request of the tenant ${tenant} to be answered, got: ${outcome}, status ${status ?? 'none'}${kind}. ` +
    'Check the URL, the key and `--model`.'
  );
}
