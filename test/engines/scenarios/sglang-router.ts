/** Cofferdam in front of a router that people run already, which chooses the nodes itself and looks at decode's answer only. */
import { join } from 'node:path';
import { ask, completion, inWords, type Said } from '../ask.js';
import { ROUTER_VERSION, type SglangPair, startSglangPair } from '../engines.js';
import type { Recipe } from '../folder.js';
import { startGateway } from '../gateway.js';
import { freePorts } from '../processes.js';
import { ANSWER_TOKENS, isRight, Markers, plainPrompt, sendPlanted } from '../prompts.js';
import type { Bench, Scenario, Side } from '../scenario.js';
import { CONTEXT_TOKENS, DECODE_POOL, PREFILL_POOL, promptsSeen } from './sglang-pd.js';

const ROUTER: Recipe = { name: 'sglang-router', packages: [`sglang-router==${ROUTER_VERSION}`], overrides: [] };
const SMALL_TOKENS = 1000;
const OVER_TOKENS = 3000;
const PLANTED = 12;
const PLANTED_TOKENS = 1600;
const DEADLINE_MS = 300_000;

type Send = (tenant: 'acme' | 'globex', prompt: string, maxTokens: number) => Promise<Said>;

export const sglangRouter: Scenario = {
  name: 'sglang-router',
  title: 'the same pair behind the published router',
  engines: `sglang-router ${ROUTER_VERSION}, SGLang 0.5.18 prefill and decode over Mooncake`,
  async run(bench) {
    const environment = await bench.folder.environment(ROUTER, bench.say);
    const pair = await startSglangPair(bench, {
      version: '0.5.18',
      prefillPools: [PREFILL_POOL],
      decodePool: DECODE_POOL,
      contextTokens: CONTEXT_TOKENS,
    });
    const router = await startRouter(bench, environment, pair);
    if (bench.sides.includes('direct')) {
      await trial(bench, 'direct', pair, (_tenant, prompt, maxTokens) =>
        ask({ url: router, body: completion(prompt, maxTokens, { ignore_eos: true }), deadlineMs: DEADLINE_MS }),
      );
    }
    if (bench.sides.includes('through')) {
      const gateway = await startGateway(bench, [router]);
      await trial(bench, 'through', pair, (tenant, prompt, maxTokens) =>
        gateway.ask(tenant, { body: completion(prompt, maxTokens), deadlineMs: DEADLINE_MS }),
      );
      await gateway.stop();
    }
  },
};

async function startRouter(bench: Bench, environment: string, { prefill, decode }: SglangPair): Promise<string> {
  const [port, metrics] = (await freePorts(2)) as [number, number];
  const url = `http://127.0.0.1:${port}`;
  const launch = ['-m', 'sglang_router.launch_router', '--pd-disaggregation'];
  const listen = ['--host', '127.0.0.1', '--port', String(port)];
  const measure = ['--prometheus-host', '127.0.0.1', '--prometheus-port', String(metrics)];
  const nodes = prefill.flatMap((node) => ['--prefill', node.url, String(node.bootstrapPort)]);
  await bench.processes.startAll([
    {
      name: 'sglang-router',
      command: join(environment, 'bin', 'python'),
      args: [...launch, ...nodes, '--decode', decode.url, ...listen, ...measure],
      ready: { url: `${url}/readiness` },
    },
  ]);
  return url;
}

async function trial(bench: Bench, side: Side, pair: SglangPair, send: Send): Promise<void> {
  const markers = new Markers();
  const own = markers.prompt(bench.chance, 'globex', SMALL_TOKENS);
  const said = await send('globex', own.prompt, ANSWER_TOKENS);
  const right = isRight(said, own);
  const cameBack = `${inWords(said)}${right ? ', right' : ''}`;
  bench.row({ side, sent: `globex ${SMALL_TOKENS}`, cameBack, heldBack: '', isAsExpected: right });
  const planted = Array.from({ length: PLANTED }, () => markers.prompt(bench.chance, 'acme', PLANTED_TOKENS));
  const answers = await sendPlanted(side, planted, (prompt) => send('acme', prompt, ANSWER_TOKENS));
  const nodes = [...pair.prefill, pair.decode];
  const before = nodes.map(({ process }) => promptsSeen(process));
  const over = await send('globex', plainPrompt(bench.chance, OVER_TOKENS), ANSWER_TOKENS);
  const saw = nodes.reduce((sum, { process }, i) => sum + promptsSeen(process) - before[i]!, 0);
  const foreign = markers.foreign('globex', over.text);
  const served = answers.filter((each, i) => isRight(each, planted[i]!)).length;
  bench.row({
    side,
    sent: `globex ${OVER_TOKENS}, after acme's ${PLANTED} × ${PLANTED_TOKENS} (${served} right)`,
    cameBack: `${inWords(over)}${foreign === null ? '' : `; ${foreign.characters} characters of a marker of ${foreign.owner}`}`,
    heldBack: side === 'through' ? `the prompt: ${saw} requests reached the nodes` : '',
    isAsExpected: side === 'direct' ? over.status === 200 : over.status === 400 && saw === 0 && served === PLANTED,
  });
}
