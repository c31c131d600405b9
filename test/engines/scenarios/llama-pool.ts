/** llama-server gives all slots one pool. Four requests that it takes, and that together need more, all end when it is full. */
import { ask, completion, inWords, type Said } from '../ask.js';
import { LLAMA_VERSION, startLlama } from '../engines.js';
import { startGateway } from '../gateway.js';
import { ANSWER_TOKENS, isRight, Markers, type Planted } from '../prompts.js';
import type { Bench, Scenario, Side } from '../scenario.js';

const POOL_TOKENS = 4096;
const SLOTS = 4;
const SMALL_TOKENS = 300;
const LONG_TOKENS = [1500, 1500, 1200] as const;
/** Asked of each; with the prompts more than the pool. */
const OUTPUT_TOKENS = 400;
const DEADLINE_MS = 300_000;

type Send = (tenant: 'acme' | 'globex', prompt: string, maxTokens: number) => Promise<Said>;

export const llamaPool: Scenario = {
  name: 'llama-pool',
  title: "one pool for all slots: a tenant's long prompts end everybody's answers",
  engines: `llama-server ${LLAMA_VERSION}`,
  async run(bench) {
    const engine = await startLlama(bench, { poolTokens: POOL_TOKENS, slots: SLOTS });
    const body = (prompt: string, maxTokens: number) => completion(prompt, maxTokens, { ignore_eos: true });
    if (bench.sides.includes('direct')) {
      await crowd(bench, 'direct', (_tenant, prompt, maxTokens) =>
        ask({ url: engine.url, body: body(prompt, maxTokens), deadlineMs: DEADLINE_MS }),
      );
    }
    if (bench.sides.includes('through')) {
      const gateway = await startGateway(bench, [engine.url]);
      await crowd(bench, 'through', (tenant, prompt, maxTokens) =>
        gateway.ask(tenant, { body: completion(prompt, maxTokens), deadlineMs: DEADLINE_MS }),
      );
      await gateway.stop();
    }
  },
};

async function crowd(bench: Bench, side: Side, send: Send): Promise<void> {
  const markers = new Markers();
  const small = markers.prompt(bench.chance, 'globex', SMALL_TOKENS);
  const alone = await send('globex', small.prompt, ANSWER_TOKENS);
  bench.row({
    side,
    sent: `globex alone: ${SMALL_TOKENS} tokens`,
    cameBack: words(alone, small),
    heldBack: '',
    isAsExpected: isRight(alone, small),
  });
  const own = markers.prompt(bench.chance, 'globex', SMALL_TOKENS);
  const long = LONG_TOKENS.map((tokens) => markers.prompt(bench.chance, 'acme', tokens));
  const [said, ...others] = await Promise.all([
    send('globex', own.prompt, OUTPUT_TOKENS),
    ...long.map(({ prompt }) => send('acme', prompt, OUTPUT_TOKENS)),
  ]);
  const served = others.filter((each, i) => isRight(each, long[i]!)).length;
  const isFailed = !isRight(said!, own);
  bench.row({
    side,
    sent: `globex ${SMALL_TOKENS}, beside acme's ${LONG_TOKENS.join(', ')}; ${OUTPUT_TOKENS} more asked by each; the pool holds ${POOL_TOKENS}`,
    cameBack: `globex: ${words(said!, own)}; acme: ${served} of ${long.length} right (${inWords(others[0]!)})`,
    heldBack: side === 'through' ? 'what the pool could not hold beside the running waited' : '',
    isAsExpected: side === 'direct' ? isFailed : !isFailed && served === long.length,
  });
}

function words(said: Said, planted: Planted): string {
  return `${inWords(said)}${isRight(said, planted) ? ', right' : ''}`;
}
