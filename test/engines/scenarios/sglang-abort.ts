/** A client leaves while its pages are being sent. Decode gives them to the next request, and what is still on its way is written there. */
import { sleep } from '../../../src/base/clock.js';
import type { Prng } from '../../../src/base/prng.js';
import { ask, type Asking, begin, completion, inWords } from '../ask.js';
import { type SglangNode, type SglangPair, startSglangPair } from '../engines.js';
import { startGateway, type TenantName } from '../gateway.js';
import { letGoOn, schedulerOf, type Stopped, stopInTransfer } from '../late-writes.js';
import { plainPrompt } from '../prompts.js';
import type { Bench, Row, Scenario, Side } from '../scenario.js';
import { startSplitter } from '../splitter.js';

const PREFILL_POOL = 8192;
/** Small enough that globex's prompt needs pages that acme's had. */
const DECODE_POOL = 6700;
/** In one piece, so that all its pages are on their way at once. */
const ACME_TOKENS = 6000;
const GLOBEX_TOKENS = 2640;
const CUE = ' what was told then: ';
const TOLD_TOKENS = 900;
const ANSWER_TOKENS = 200;
/** KV of a token of the lab model in float32. */
const TOKEN_BYTES = 4096;
/** Stopped when between a thirty-second and two thirds of acme's pages have gone out. */
const FROM_BYTES = (ACME_TOKENS * TOKEN_BYTES) >> 5;
const UNTIL_BYTES = Math.floor(ACME_TOKENS * TOKEN_BYTES * 0.66);
const TRIES = 12;
const WATCH_S = 120;
const FREED_MS_MAX = 12_000;
/** Of globex's answer, before the stopped node goes on. */
const BEGUN_CHARACTERS = 8;
const HELD_MS = 25_000;
const DEADLINE_MS = 300_000;
const POLL_MS = 50;

type Begin = (tenant: TenantName, prompt: string, maxTokens: number) => Asking;

export const sglangAbort: Scenario = {
  name: 'sglang-abort',
  title: 'a client leaves in mid-transfer, and its pages are written over what decode has given them to',
  engines: 'SGLang 0.5.18, two prefill nodes and decode over Mooncake',
  async run(bench) {
    const pair = await startSglangPair(bench, {
      version: '0.5.18',
      prefillPools: [PREFILL_POOL, PREFILL_POOL],
      decodePool: DECODE_POOL,
      contextTokens: PREFILL_POOL,
      chunkTokens: PREFILL_POOL,
    });
    if (bench.sides.includes('direct')) {
      const splitter = await startSplitter({ kind: 'sglang', prefill: pair.prefill, decode: pair.decode.url });
      await untilHit(bench, 'direct', pair, (_tenant, prompt, maxTokens) =>
        begin({ url: splitter.url, body: streamed(prompt, maxTokens, true), deadlineMs: DEADLINE_MS }),
      );
      await splitter.close();
    }
    if (bench.sides.includes('through')) {
      const urls = [...pair.prefill.map(({ url }) => url), pair.decode.url];
      const gateway = await startGateway(bench, urls);
      await untilHit(bench, 'through', pair, (tenant, prompt, maxTokens) =>
        begin({
          url: gateway.url,
          key: gateway.key(tenant),
          body: streamed(prompt, maxTokens, false),
          deadlineMs: DEADLINE_MS,
        }),
      );
      await gateway.stop();
    }
  },
};

function streamed(prompt: string, maxTokens: number, ignoresEnd: boolean): Readonly<Record<string, unknown>> {
  return completion(prompt, maxTokens, { stream: true, ...(ignoresEnd ? { ignore_eos: true } : {}) });
}

/** One prompt of each tenant through each prefill node first: connections are made then. */
async function warmUp(bench: Bench, send: Begin): Promise<void> {
  for (let i = 0; i < 2; i++) await send('globex', plainPrompt(bench.chance, 300), 4).said;
}

async function untilHit(bench: Bench, side: Side, pair: SglangPair, send: Begin): Promise<void> {
  await warmUp(bench, send);
  for (let i = 1; i <= TRIES; i++) {
    const outcome = await oneTry(bench, side, pair, send);
    bench.say(`try ${i}: ${typeof outcome === 'string' ? outcome : outcome.cameBack}`);
    if (typeof outcome === 'string' || (side === 'direct' && !outcome.isAsExpected)) continue;
    bench.row(outcome);
    return;
  }
  bench.row({
    side,
    sent: `acme ${ACME_TOKENS}, its client leaves in mid-transfer`,
    cameBack: `${TRIES} tries: the moment was missed, or no late write met a page in use`,
    heldBack: '',
    isAsExpected: false,
  });
}

/** How it ended, or what came of it where the moment was met. */
async function oneTry(bench: Bench, side: Side, pair: SglangPair, send: Begin): Promise<Stopped | Row> {
  const prompt = tellingPrompt(bench.chance);
  // What it says when nobody disturbs it.
  const quiet = (await send('globex', prompt, ANSWER_TOKENS).said).text;
  await untilFree(bench, pair.decode, FREED_MS_MAX);
  const pids = pair.prefill.map(({ process }) => schedulerOf(process));
  const watches = pids.map((pid) => stopInTransfer(pid, FROM_BYTES, UNTIL_BYTES, WATCH_S));
  await Promise.all(watches.map(({ ready }) => ready));
  const acme = send('acme', plainPrompt(bench.chance, ACME_TOKENS).toUpperCase(), ANSWER_TOKENS);
  const outcome = await Promise.race(watches.map(async ({ result }, i) => ({ how: await result, pid: pids[i]! })));
  for (const watch of watches) watch.end();
  if (outcome.how !== 'stopped') {
    acme.leave();
    await acme.said;
    await untilFree(bench, pair.decode, FREED_MS_MAX);
    return outcome.how;
  }
  try {
    return await afterStop(bench, side, pair, send, { acme, prompt, quiet, pid: outcome.pid });
  } finally {
    letGoOn(outcome.pid);
  }
}

/** Its answer is the text that follows the cue: copied, token for token, from the last third of its own pages. */
function tellingPrompt(chance: Prng): string {
  const before = plainPrompt(chance, GLOBEX_TOKENS - TOLD_TOKENS - 2 * CUE.length);
  return `${before}${CUE}${plainPrompt(chance, TOLD_TOKENS)}${CUE}`;
}

interface Stop {
  readonly acme: Asking;
  /** Of globex, and its answer in quiet. */
  readonly prompt: string;
  readonly quiet: string;
  readonly pid: number;
}

async function afterStop(
  bench: Bench,
  side: Side,
  pair: SglangPair,
  send: Begin,
  { acme, prompt, quiet, pid }: Stop,
): Promise<Row> {
  acme.leave();
  await acme.said;
  const used = await untilFree(bench, pair.decode, FREED_MS_MAX);
  const globex = send('globex', prompt, ANSWER_TOKENS);
  const endMs = bench.clock.nowMs() + HELD_MS;
  while (globex.text().length < BEGUN_CHARACTERS && bench.clock.nowMs() < endMs) await sleep(bench.clock, POLL_MS);
  const began = globex.text().length;
  letGoOn(pid);
  const said = await globex.said;
  const capitals = said.text.replaceAll(/[^A-Z]/g, '').length;
  const isSame = said.text === quiet;
  return {
    side,
    sent: `acme ${ACME_TOKENS} in capitals, its client leaves in mid-transfer; globex ${GLOBEX_TOKENS} in small letters`,
    cameBack: `decode held ${used} tokens when globex began; globex: ${inWords(said)}, ${isSame ? 'the answer that it gets in quiet' : 'another answer than in quiet'}, ${capitals} capitals in ${said.text.length} characters`,
    heldBack:
      side === 'through'
        ? `acme's pages until their transfer had ended; globex had ${began} characters before that`
        : '',
    isAsExpected: side === 'direct' ? !isSame && said.status === 200 : isSame && said.end === 'whole',
  };
}

/** Tokens that decode holds, once none or after `msMax`. */
async function untilFree(bench: Bench, decode: SglangNode, msMax: number): Promise<number> {
  const endMs = bench.clock.nowMs() + msMax;
  for (;;) {
    const { json } = await ask({ url: decode.url, path: '/v1/loads', deadlineMs: 10_000 });
    const [load] = (json?.loads ?? []) as readonly { readonly num_used_tokens?: number }[];
    const used = load?.num_used_tokens ?? -1;
    if (used === 0 || bench.clock.nowMs() > endMs) return used;
    await sleep(bench.clock, POLL_MS * 4);
  }
}
