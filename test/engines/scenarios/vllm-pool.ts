/** A prompt that fits the context and not the pool waits for ever in vLLM, and everybody behind it too. */
import { sleep } from '../../../src/base/clock.js';
import { ask, begin, completion, inWords } from '../ask.js';
import { type Engine, startVllm, VLLM_VERSION } from '../engines.js';
import { startGateway } from '../gateway.js';
import { ANSWER_TOKENS, isRight, Markers, plainPrompt } from '../prompts.js';
import type { Bench, Scenario } from '../scenario.js';
import { promptsSeen } from './sglang-pd.js';

const POOL_TOKENS = 1920;
const CONTEXT_TOKENS = 4096;
const OVER_TOKENS = 2500;
const SMALL_TOKENS = 200;
const DEADLINE_MS = 300_000;
const HUNG_MS = 45_000;
const SETTLE_MS = 2_000;

export const vllmPool: Scenario = {
  name: 'vllm-pool',
  title: 'a prompt over the pool gets silence, and so does everybody behind it',
  engines: `vLLM ${VLLM_VERSION}, one node, its check of the pool's size at start switched off`,
  async run(bench) {
    const [engine] = await startVllm(bench, [
      { name: 'vllm-single', poolTokens: POOL_TOKENS, contextTokens: CONTEXT_TOKENS },
    ]);
    if (bench.sides.includes('direct')) await direct(bench, engine!);
    if (bench.sides.includes('through')) await through(bench, engine!);
  },
};

async function direct(bench: Bench, { url }: Engine): Promise<void> {
  const markers = new Markers();
  const small = async (sent: string, deadlineMs: number, expects: 'right' | 'silent'): Promise<void> => {
    const own = markers.prompt(bench.chance, 'globex', SMALL_TOKENS);
    const said = await ask({ url, body: completion(own.prompt, ANSWER_TOKENS), deadlineMs });
    const right = isRight(said, own);
    const isAsExpected = expects === 'right' ? right : said.end === 'silent';
    const cameBack = `${inWords(said)}${right ? ', right' : ''}`;
    bench.row({ side: 'direct', sent, cameBack, heldBack: '', isAsExpected });
  };
  await small(`globex alone: ${SMALL_TOKENS}`, DEADLINE_MS, 'right');
  const hung = begin({
    url,
    body: completion(plainPrompt(bench.chance, OVER_TOKENS), ANSWER_TOKENS),
    deadlineMs: DEADLINE_MS,
  });
  await sleep(bench.clock, SETTLE_MS);
  await small(`globex ${SMALL_TOKENS}, behind acme's ${OVER_TOKENS}; the pool holds ${POOL_TOKENS}`, HUNG_MS, 'silent');
  hung.leave();
  const said = await hung.said;
  bench.row({
    side: 'direct',
    sent: `acme ${OVER_TOKENS}`,
    cameBack: `${inWords(said)}, until its client left`,
    heldBack: '',
    isAsExpected: said.status === 0,
  });
  await small(`globex ${SMALL_TOKENS}, after acme's client left`, DEADLINE_MS, 'right');
}

async function through(bench: Bench, engine: Engine): Promise<void> {
  const gateway = await startGateway(bench, [engine.url]);
  const before = promptsSeen(engine.process);
  const said = await gateway.ask('acme', {
    body: completion(plainPrompt(bench.chance, OVER_TOKENS), ANSWER_TOKENS),
    deadlineMs: DEADLINE_MS,
  });
  const saw = promptsSeen(engine.process) - before;
  bench.row({
    side: 'through',
    sent: `acme ${OVER_TOKENS}`,
    cameBack: inWords(said),
    heldBack: `the prompt: ${saw} requests reached the node`,
    isAsExpected: said.status === 400 && saw === 0,
  });
  const own = new Markers().prompt(bench.chance, 'globex', SMALL_TOKENS);
  const small = await gateway.ask('globex', { body: completion(own.prompt, ANSWER_TOKENS), deadlineMs: DEADLINE_MS });
  bench.row({
    side: 'through',
    sent: `globex ${SMALL_TOKENS}`,
    cameBack: `${inWords(small)}${isRight(small, own) ? ', right' : ''}`,
    heldBack: '',
    isAsExpected: isRight(small, own),
  });
  await gateway.stop();
}
