/** A prompt that prefill can't hold and decode can: the public incident, on the version that has it. */
import { ask, completion, inWords, type Said } from '../ask.js';
import { type SglangPair, startSglangPair } from '../engines.js';
import { type Gateway, startGateway, type TenantName } from '../gateway.js';
import { ANSWER_TOKENS, isRight, Markers, type Planted, plainPrompt, sendPlanted } from '../prompts.js';
import type { Started } from '../processes.js';
import type { Bench, Scenario, Side } from '../scenario.js';
import { startSplitter } from '../splitter.js';

export const PREFILL_POOL = 2048;
export const DECODE_POOL = 8192;
export const CONTEXT_TOKENS = 8192;
/** The longest prompt that this prefill takes: its pool less seven. */
const LIMIT_TOKENS = PREFILL_POOL - 7;
const OVER_TOKENS = 3000;
const PLANTED = 12;
const PLANTED_TOKENS = 1600;
const TRIES = 10;
const OVER_ANSWER_TOKENS = 64;
const DEADLINE_MS = 300_000;

export type Send = (tenant: TenantName, prompt: string, maxTokens: number, streams?: boolean) => Promise<Said>;

export const sglangPd: Scenario = {
  name: 'sglang-pd',
  title: "prefill's pool is smaller than decode's: an over-long prompt is answered from another tenant's pages",
  engines: 'SGLang 0.5.18, prefill and decode over Mooncake',
  async run(bench) {
    const pair = await startSglangPair(bench, {
      version: '0.5.18',
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
  const send: Send = (_tenant, prompt, maxTokens, streams = false) =>
    ask({
      url: splitter.url,
      body: completion(prompt, maxTokens, { ignore_eos: true, stream: streams }),
      deadlineMs: DEADLINE_MS,
    });
  const markers = new Markers();
  await atTheLimit(bench, 'direct', markers, send);
  await plant(bench, 'direct', markers, send);
  let seen: Said | null = null;
  for (let i = 1; i <= TRIES; i++) {
    seen = await send('globex', plainPrompt(bench.chance, OVER_TOKENS), OVER_ANSWER_TOKENS, i % 2 === 0);
    const found = markers.foreign('globex', seen.text);
    bench.row({
      side: 'direct',
      sent: `globex ${OVER_TOKENS}${i % 2 === 0 ? ', streamed' : ''}, no marker in it (prompt ${i} of up to ${TRIES})`,
      cameBack: `${inWords(seen)}; ${found === null ? 'no marker' : `${found.characters} characters of a marker of ${found.owner}`}`,
      heldBack: '',
      // Each prompt that is answered is the fault; a marker shows whose pages they were.
      isAsExpected: seen.status === 200,
    });
    if (found !== null) break;
    if (i < TRIES) await plant(bench, 'direct', markers, send);
    else couldNotShow(bench);
  }
  await splitter.close();
}

/** Every over-long prompt was answered, and none with a marker: the fault is there, whose pages they were is not shown. */
function couldNotShow(bench: Bench): void {
  const sent = `globex ${OVER_TOKENS}, ${TRIES} prompts`;
  bench.row({ side: 'direct', sent, cameBack: 'no marker of acme in any', heldBack: '', isAsExpected: false });
}

/** The longest prompt that is right, so that what is over it is known. */
async function atTheLimit(bench: Bench, side: Side, markers: Markers, send: Send): Promise<void> {
  const own = markers.prompt(bench.chance, 'globex', LIMIT_TOKENS);
  const said = await send('globex', own.prompt, ANSWER_TOKENS);
  bench.row({
    side,
    sent: `globex ${LIMIT_TOKENS}, the most that prefill takes`,
    cameBack: `${inWords(said)}${isRight(said, own) ? ', right' : ', wrong'}`,
    heldBack: '',
    isAsExpected: isRight(said, own),
  });
}

async function plant(bench: Bench, side: Side, markers: Markers, send: Send): Promise<void> {
  const planted = Array.from({ length: PLANTED }, () => markers.prompt(bench.chance, 'acme', PLANTED_TOKENS));
  const said = await sendPlanted(side, planted, (prompt) => send('acme', prompt, ANSWER_TOKENS));
  const wrong = said.flatMap((each, i) => (isRight(each, planted[i]!) ? [] : [wrongWords(each, planted[i]!)]));
  const right = PLANTED - wrong.length;
  bench.row({
    side,
    sent: `acme ${PLANTED} × ${PLANTED_TOKENS}, each with a marker of its own`,
    cameBack: [`${right} of ${PLANTED} right`, ...wrong].join('; '),
    heldBack: '',
    isAsExpected: right === PLANTED,
  });
}

/** How far a wrong answer goes along with the right one: a model's slip does for a while, foreign pages don't. */
function wrongWords(said: Said, { marker }: Planted): string {
  const text = said.text.trimStart();
  let same = 0;
  while (same < marker.text.length && text[same] === marker.text[same]) same++;
  return `one ${inWords(said)}, ${same} of ${marker.text.length} characters right`;
}

async function through(bench: Bench, pair: SglangPair): Promise<void> {
  const urls = [...pair.prefill.map(({ url }) => url), pair.decode.url];
  const gateway = await startGateway(bench, urls);
  const send = sendThrough(gateway);
  const markers = new Markers();
  await atTheLimit(bench, 'through', markers, send);
  await plant(bench, 'through', markers, send);
  for (const streams of [false, true]) await refused(bench, pair, send, streams);
  await plant(bench, 'through', markers, send);
  await gateway.stop();

  const open = await startGateway(bench, urls, ['--guard-off', 'admission']);
  await plant(bench, 'through', markers, sendThrough(open));
  for (const streams of [false, true]) await judgedByCount(bench, markers, sendThrough(open), streams);
  await open.stop();
}

function sendThrough(gateway: Gateway): Send {
  return (tenant, prompt, maxTokens, streams = false) =>
    gateway.ask(tenant, { body: completion(prompt, maxTokens, { stream: streams }), deadlineMs: DEADLINE_MS });
}

/** A 400 with the length and the limit, before any node has seen the prompt. */
async function refused(bench: Bench, pair: SglangPair, send: Send, streams: boolean): Promise<void> {
  const nodes = [...pair.prefill, pair.decode];
  const before = nodes.map(({ process }) => promptsSeen(process));
  const said = await send('globex', plainPrompt(bench.chance, OVER_TOKENS), OVER_ANSWER_TOKENS, streams);
  const saw = nodes.reduce((sum, { process }, i) => sum + promptsSeen(process) - before[i]!, 0);
  const names = (said.error ?? '').replaceAll(/[,_]/g, '');
  const namesBoth = names.includes(String(OVER_TOKENS)) && /\b20[0-4]\d\b/.test(names);
  bench.row({
    side: 'through',
    sent: `globex ${OVER_TOKENS}${streams ? ', streamed' : ''}`,
    cameBack: inWords(said),
    heldBack: `the prompt: ${saw} requests reached the nodes`,
    isAsExpected: said.status === 400 && namesBoth && saw === 0,
  });
}

/** With admission off the prompt goes out, and prefill's own count ends it. */
async function judgedByCount(bench: Bench, markers: Markers, send: Send, streams: boolean): Promise<void> {
  const said = await send('globex', plainPrompt(bench.chance, OVER_TOKENS), OVER_ANSWER_TOKENS, streams);
  const isHeld = said.text === '' && (said.status !== 200 || said.error !== null);
  const foreign = markers.foreign('globex', said.text);
  bench.row({
    side: 'through',
    sent: `globex ${OVER_TOKENS}${streams ? ', streamed' : ''}, admission off`,
    cameBack: `${inWords(said)}; ${said.text.length} characters of text${foreign === null ? '' : `, of ${foreign.owner}`}`,
    heldBack: isHeld ? "decode's whole answer, since prefill had counted 1 token" : '',
    isAsExpected: isHeld,
  });
}

/** Prompts that a node has logged. */
export function promptsSeen(process: Started): number {
  return process.said().match(/"POST \/(?:generate|v1\/(?:chat\/)?completions) HTTP/g)?.length ?? 0;
}
