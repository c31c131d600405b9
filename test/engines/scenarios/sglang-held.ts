/** The next version refuses an over-long prompt at prefill, and decode is not told: it keeps the pages of a prompt that never comes. */
import { sleep } from '../../../src/base/clock.js';
import { ask, begin, completion, inWords, type Said } from '../ask.js';
import { type SglangPair, startSglangPair } from '../engines.js';
import { startGateway } from '../gateway.js';
import { ANSWER_TOKENS, isRight, Markers, plainPrompt } from '../prompts.js';
import type { Bench, Scenario } from '../scenario.js';
import { startSplitter } from '../splitter.js';
import { CONTEXT_TOKENS, DECODE_POOL, PREFILL_POOL, promptsSeen } from './sglang-pd.js';

const OVER_TOKENS = 2977;
const OVER = 3;
const SMALL_TOKENS = 180;
const DEADLINE_MS = 300_000;
/** Long after any small request of this pair has been answered. */
const STARVED_MS = 60_000;
const SETTLE_MS = 3_000;

export const sglangHeld: Scenario = {
  name: 'sglang-held',
  title: 'three over-long prompts of one tenant keep decode from everybody else',
  engines: 'SGLang 0.5.23, prefill and decode over Mooncake',
  async run(bench) {
    const pair = await startSglangPair(bench, {
      version: '0.5.23',
      prefillPools: [PREFILL_POOL],
      decodePool: DECODE_POOL,
      contextTokens: CONTEXT_TOKENS,
    });
    if (bench.sides.includes('direct')) await direct(bench, pair);
    if (bench.sides.includes('through')) await through(bench, pair);
  },
};

async function direct(bench: Bench, pair: SglangPair): Promise<void> {
  const splitter = await startSplitter({ kind: 'sglang', prefill: pair.prefill, decode: pair.decode.url });
  const body = (prompt: string) => completion(prompt, ANSWER_TOKENS, { ignore_eos: true });
  const small = async (deadlineMs: number): Promise<{ said: Said; isRight: boolean }> => {
    const own = new Markers().prompt(bench.chance, 'globex', SMALL_TOKENS);
    const said = await ask({ url: splitter.url, body: body(own.prompt), deadlineMs });
    return { said, isRight: isRight(said, own) };
  };
  const alone = await small(DEADLINE_MS);
  note(bench, `globex alone: ${SMALL_TOKENS}`, alone, alone.isRight);
  const held = Array.from({ length: OVER }, () =>
    begin({ url: splitter.url, body: body(plainPrompt(bench.chance, OVER_TOKENS)), deadlineMs: DEADLINE_MS }),
  );
  await sleep(bench.clock, SETTLE_MS);
  const starved = await small(STARVED_MS);
  const load = await loadOf(pair.decode.url);
  const sent = `globex ${SMALL_TOKENS}, beside acme's ${OVER} × ${OVER_TOKENS}`;
  note(bench, sent, starved, starved.said.end === 'silent', load);
  for (const each of held) each.leave();
  await Promise.all(held.map(({ said }) => said));
  const after = await small(DEADLINE_MS);
  note(bench, `globex ${SMALL_TOKENS}, after acme's clients left`, after, after.isRight);
  await splitter.close();
}

function note(
  bench: Bench,
  sent: string,
  { said, isRight: right }: { readonly said: Said; readonly isRight: boolean },
  isAsExpected: boolean,
  more = '',
): void {
  const cameBack = [inWords(said), ...(right ? ['right'] : []), ...(more === '' ? [] : [more])].join(', ');
  bench.row({ side: 'direct', sent, cameBack, heldBack: '', isAsExpected });
}

async function through(bench: Bench, pair: SglangPair): Promise<void> {
  const nodes = [...pair.prefill, pair.decode];
  const gateway = await startGateway(bench, [...pair.prefill.map(({ url }) => url), pair.decode.url]);
  const before = nodes.map(({ process }) => promptsSeen(process));
  const over = await Promise.all(
    Array.from({ length: OVER }, () =>
      gateway.ask('acme', {
        body: completion(plainPrompt(bench.chance, OVER_TOKENS), ANSWER_TOKENS),
        deadlineMs: DEADLINE_MS,
      }),
    ),
  );
  const saw = nodes.reduce((sum, { process }, i) => sum + promptsSeen(process) - before[i]!, 0);
  bench.row({
    side: 'through',
    sent: `acme ${OVER} × ${OVER_TOKENS}`,
    cameBack: inWords(over[0]!),
    heldBack: `the prompts: ${saw} requests reached the nodes`,
    isAsExpected: over.every(({ status }) => status === 400) && saw === 0,
  });
  const own = new Markers().prompt(bench.chance, 'globex', SMALL_TOKENS);
  const said = await gateway.ask('globex', { body: completion(own.prompt, ANSWER_TOKENS), deadlineMs: DEADLINE_MS });
  bench.row({
    side: 'through',
    sent: `globex ${SMALL_TOKENS}`,
    cameBack: `${inWords(said)}${isRight(said, own) ? ', right' : ''}; ${await loadOf(pair.decode.url)}`,
    heldBack: '',
    isAsExpected: isRight(said, own),
  });
  await gateway.stop();
}

/** What decode says of itself. */
async function loadOf(url: string): Promise<string> {
  const { json } = await ask({ url, path: '/v1/loads?include=core,disagg,queues', deadlineMs: 30_000 });
  const [load] = (json?.loads ?? []) as readonly Readonly<Record<string, unknown>>[];
  const queues = { ...(load?.disaggregation as object | undefined) } as Record<string, unknown>;
  const parts = [
    `running ${String(load?.num_running_reqs)}`,
    `tokens used ${String(load?.num_used_tokens)} of ${String(load?.max_total_num_tokens)}`,
    ...['decode_prealloc_queue_reqs', 'decode_transfer_queue_reqs'].map((name) => `${name} ${String(queues[name])}`),
  ];
  return `decode: ${parts.join(', ')}`;
}
