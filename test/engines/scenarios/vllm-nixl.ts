/** Over NIXL, decode takes pages by the name that a request gives it. Whoever may name them reads another tenant's. */
import { ask, completion, inWords, type Said } from '../ask.js';
import { NIXL_VERSION, startVllm, VLLM_VERSION, type VllmOptions } from '../engines.js';
import { startGateway, type TenantName } from '../gateway.js';
import { ANSWER_TOKENS, isRight, Markers, type Planted } from '../prompts.js';
import { CouldNotRun } from '../could-not-run.js';
import type { Bench, Scenario, Side } from '../scenario.js';
import { startSplitter } from '../splitter.js';

const POOL_TOKENS = 8064;
const CONTEXT_TOKENS = 4096;
const PROMPT_TOKENS = 1000;
const DEADLINE_MS = 300_000;

export const NIXL_PAIR: readonly VllmOptions[] = ['prefill', 'decode'].map((role) => ({
  name: `vllm-${role}`,
  poolTokens: POOL_TOKENS,
  contextTokens: CONTEXT_TOKENS,
  isPaired: true,
}));

type Fields = Readonly<Record<string, unknown>>;
type Send = (tenant: TenantName, planted: Planted, fields: Fields, headers?: Record<string, string>) => Promise<Said>;

export const vllmNixl: Scenario = {
  name: 'vllm-nixl',
  title: "a request that names another's pages is answered from them",
  engines: `vLLM ${VLLM_VERSION}, prefill and decode over NIXL ${NIXL_VERSION}`,
  async run(bench) {
    const [prefill, decode] = await startVllm(bench, NIXL_PAIR);
    const splitter = await startSplitter({ kind: 'nixl', prefill: prefill!.url, decode: decode!.url });
    const markers = new Markers();
    const handle = () => plantedHandle(bench, markers, prefill!.url);
    if (bench.sides.includes('direct')) {
      const send: Send = (_tenant, { prompt }, fields, headers = {}) =>
        ask({ url: splitter.url, headers, body: completion(prompt, ANSWER_TOKENS, fields), deadlineMs: DEADLINE_MS });
      await trials(bench, 'direct', markers, send, handle);
    }
    if (bench.sides.includes('through')) {
      const gateway = await startGateway(bench, [splitter.url]);
      const send: Send = (tenant, { prompt }, fields, headers = {}) =>
        gateway.ask(tenant, { headers, body: completion(prompt, ANSWER_TOKENS, fields), deadlineMs: DEADLINE_MS });
      await trials(bench, 'through', markers, send, handle);
      await gateway.stop();
    }
    await splitter.close();
  },
};

/** Prefills a prompt of acme and keeps what its decode would be told. */
async function plantedHandle(bench: Bench, markers: Markers, url: string): Promise<unknown> {
  const { prompt } = markers.prompt(bench.chance, 'acme', PROMPT_TOKENS);
  const fields = { kv_transfer_params: { do_remote_decode: true, do_remote_prefill: false } };
  const said = await ask({ url, body: completion(prompt, 1, fields), deadlineMs: DEADLINE_MS });
  const params = said.json?.kv_transfer_params;
  if (params === undefined || params === null) throw new CouldNotRun(`prefill gave no handle: ${inWords(said)}`);
  return params;
}

async function trials(
  bench: Bench,
  side: Side,
  markers: Markers,
  send: Send,
  handle: () => Promise<unknown>,
): Promise<void> {
  await honest(bench, side, markers, send);
  const ways: readonly (readonly [string, (params: unknown) => Fields])[] = [
    ["acme's kv_transfer_params", (params) => ({ kv_transfer_params: params })],
    ['the same in vllm_xargs', (params) => ({ vllm_xargs: { kv_transfer_params: params } })],
  ];
  for (const [words, fields] of side === 'direct' ? ways.slice(0, 1) : ways) {
    const own = markers.prompt(bench.chance, 'globex', PROMPT_TOKENS);
    const said = await send('globex', own, fields(await handle()));
    const foreign = markers.foreign('globex', said.text);
    const found =
      foreign === null ? 'no marker of acme' : `${foreign.characters} characters of a marker of ${foreign.owner}`;
    bench.row({
      side,
      sent: `globex ${PROMPT_TOKENS}, with ${words}`,
      cameBack: `${inWords(said)}; ${isRight(said, own) ? 'right' : found}`,
      heldBack: side === 'through' && said.status === 400 ? 'the request' : '',
      isAsExpected:
        side === 'direct' ? foreign !== null : foreign === null && (said.status === 400 || isRight(said, own)),
    });
  }
  await sameIds(bench, side, markers, send);
}

async function honest(bench: Bench, side: Side, markers: Markers, send: Send): Promise<void> {
  const own = markers.prompt(bench.chance, 'globex', PROMPT_TOKENS);
  const said = await send('globex', own, {});
  bench.row({
    side,
    sent: `globex ${PROMPT_TOKENS}`,
    cameBack: `${inWords(said)}${isRight(said, own) ? ', right' : ''}`,
    heldBack: '',
    isAsExpected: isRight(said, own),
  });
}

/** Both tenants choose one id at the same time; each must get its own answer. */
async function sameIds(bench: Bench, side: Side, markers: Markers, send: Send): Promise<void> {
  const pairs: readonly (readonly [string, Fields, Record<string, string>])[] = [
    ['x-request-id', {}, { 'x-request-id': 'same-id-1' }],
    ['request_id', { request_id: 'same-id-2' }, {}],
  ];
  for (const [name, fields, headers] of pairs) {
    const own = (['acme', 'globex'] as const).map((tenant) => markers.prompt(bench.chance, tenant, PROMPT_TOKENS));
    const said = await Promise.all([send('acme', own[0]!, fields, headers), send('globex', own[1]!, fields, headers)]);
    const right = said.filter((each, i) => isRight(each, own[i]!)).length;
    const refused = said.filter(({ status }) => status === 400).length;
    const leaked = (['acme', 'globex'] as const).some((tenant, i) => markers.foreign(tenant, said[i]!.text) !== null);
    bench.row({
      side,
      sent: `acme and globex ${PROMPT_TOKENS} at once, both with the same ${name}`,
      cameBack: `${right} of 2 right${refused > 0 ? `, ${refused} refused with 400` : ''}${leaked ? ', one with a marker of the other' : ''}`,
      heldBack: '',
      // This engine adds to an id what makes it its own: no fault on either side.
      isAsExpected: !leaked && right + refused === 2,
    });
  }
}
