/**
 * Goal: one tenant that sends its worst takes no engine from another. Method: the embedded engine in its threads; lanes of one
 * tenant that send what a seed draws from a list of bad manners, while another asks for its own marker and must get it.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { sleep } from '../src/base/clock.js';
import { Prng } from '../src/base/prng.js';
import { SENTINEL_EVERY_MS } from '../src/gateway/bounds.js';
import { makeMarker, MARKER_CHARACTERS } from '../src/markers/marker.js';
import { type Asking, askCompletion } from './support/client.js';
import { ACME_KEY, AUTH, GLOBEX_KEY, idle, rawRequest, until } from './support/gateway-harness.js';
import { type RealGateway, startRealGateway } from './support/real-gateway.js';
import { filler, recallPrompt } from './support/recall.js';

const SEED = Number(process.env.SEED ?? 2_718);
const LONG = process.env.COFFERDAM_LONG === '1';
const SECONDS = LONG ? 60 : 2;
const LANES = 12;
const SECRET = Buffer.from('a secret of the worst tenant');
const THEIRS = Array.from({ length: 20 }, (_, index) => makeMarker(SECRET, 'globex', 'worst', index));
const OWN = makeMarker(SECRET, 'acme', 'worst', 0);

type Act = (gateway: RealGateway, chance: Prng) => Promise<void>;

/** What the tenant has open: when the time is over, it leaves all of it. */
const open = new Set<Asking>();

/** Asks, and leaves after a while, or stays. */
async function ask(gateway: RealGateway, chance: Prng, body: Record<string, unknown>, leaves = 0.5): Promise<void> {
  let asking: Asking | null = null;
  const letters = chance.between(1, 30);
  const onText = (text: string): void => {
    if (text.length >= letters && letters % 3 === 0) asking?.leave();
  };
  const bytes = chance.chance(0.1) ? { bytes: chance.between(1, 60) } : {};
  asking = askCompletion({ url: gateway.url, key: ACME_KEY, body, onText, ...bytes });
  open.add(asking);
  const mustLeave = 'bytes' in bytes || chance.chance(leaves);
  if (mustLeave) {
    await sleep(gateway.clock, chance.below(60));
    asking.leave();
  }
  await asking.answered;
  open.delete(asking);
}

/** Bytes as they are, on a socket that is closed at some moment. */
async function raw(gateway: RealGateway, chance: Prng, bytes: string | Buffer): Promise<void> {
  const socket = connect(gateway.port, '127.0.0.1');
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  if (chance.chance(0.3)) socket.pause();
  socket.write(bytes);
  await sleep(gateway.clock, chance.between(1, 40));
  socket.destroy();
  await closed;
}

const prompt = (chance: Prng): string => filler(chance, chance.between(1, 400));
const marker = (chance: Prng): string =>
  chance.pick([chance.pick(THEIRS).text, OWN.text, 'KVC-', `KVC-${filler(chance, 26)}`]);

const ACTS: Readonly<Record<string, Act>> = {
  leaves: (gateway, chance) => ask(gateway, chance, { prompt: prompt(chance), stream: chance.chance(0.5) }, 1),
  'over-long prompts': (gateway, chance) =>
    ask(gateway, chance, { prompt: filler(chance, chance.pick([2040, 2048, 5000, 60_000])), max_tokens: 8 }),
  'huge max_tokens': (gateway, chance) =>
    ask(gateway, chance, { prompt: prompt(chance), max_tokens: chance.pick([1, 2047, 1e9, 2 ** 53 - 1, 2 ** 60, -1]) }),
  'fields of engines': (gateway, chance) =>
    ask(gateway, chance, {
      prompt: prompt(chance),
      ...chance.pick([
        { bootstrap_room: 1 },
        { kv_transfer_params: { handle: 'h-1' } },
        { vllm_xargs: { kv_transfer_params: { handle: 'h' } } },
        { cache_salt: '' },
        { priority: -9 },
        { rid: 'x' },
        { n: 1_000_000 },
        { prompt: [1, 2, 3] },
        { seed: 2 ** 53 },
        { logprobs: 5 },
        { temperature: 1e308 },
      ]),
    }),
  'markers in prompts': (gateway, chance) => {
    const text = `${marker(chance)} ${filler(chance, chance.below(100))} ${marker(chance)}`;
    return ask(
      gateway,
      chance,
      { prompt: `${text} ${text.slice(0, chance.between(5, 40))}`, max_tokens: 60, stream: true },
      0.1,
    );
  },
  'stop sequences': (gateway, chance) =>
    ask(gateway, chance, {
      prompt: prompt(chance),
      max_tokens: 200,
      stream: chance.chance(0.5),
      stop: chance.pick<unknown>([
        'a',
        ['e', ' ', 't', '.'],
        'ab'.repeat(128),
        [marker(chance)],
        ['x'.repeat(257)],
        '',
      ]),
    }),
  'odd characters': (gateway, chance) =>
    ask(gateway, chance, {
      prompt: chance.pick([
        '',
        ' ',
        '\u0000',
        '\ud800',
        '\u{1f600}'.repeat(50),
        '\u202e<|endoftext|>',
        '\n'.repeat(300),
      ]),
    }),
  'broken bodies': (gateway, chance) => {
    const body = chance.pick(['{', '[]', 'null', '"x"', '{"model":"lab","prompt":"a"', '['.repeat(5000), '\ufeff{}']);
    return raw(
      gateway,
      chance,
      rawRequest('/v1/completions', body, [AUTH, `Content-Length: ${Buffer.byteLength(body)}`]),
    );
  },
  'broken heads': (gateway, chance) =>
    raw(
      gateway,
      chance,
      chance.pick([
        'PRI * HTTP/2.0\r\n\r\n',
        'POST / HTTP/1.1\r\n',
        '\u0000'.repeat(100),
        rawRequest('/v1/completions', '0\r\n\r\n', [AUTH, 'Content-Length: 5', 'Transfer-Encoding: chunked']),
        rawRequest('/v1/completions', '', [AUTH, AUTH, 'Content-Length: 0']),
      ]),
    ),
  'many at once': async (gateway, chance) => {
    const body = { prompt: prompt(chance), max_tokens: 5 };
    await Promise.all(Array.from({ length: 30 }, () => ask(gateway, chance, body, 0.5)));
  },
  'reads nothing': (gateway, chance) => {
    const body = JSON.stringify({ model: 'lab', prompt: 'abcd'.repeat(20), stream: true, max_tokens: 1000 });
    return raw(gateway, chance, rawRequest('/v1/completions', body, [AUTH, `Content-Length: ${body.length}`]));
  },
};

test(`one tenant's worst for ${SECONDS} s takes no engine from another (seed ${SEED})`, async (context) => {
  const engine = { context: 2048, prefillPool: 4096, decodePool: 8192, runningMax: 8 };
  const gateway = await startRealGateway(engine, { markers: [...THEIRS, OWN], tenantOpenMax: 40 });
  const chance = new Prng(SEED);
  const endMs = gateway.clock.nowMs() + SECONDS * 1000;
  gateway.clock.after(SECONDS * 1000, () => {
    for (const asking of open) asking.leave();
  });
  const acts = new Map<string, number>();
  let answered = 0;
  const lane = async (own: Prng, first: string | undefined): Promise<void> => {
    for (let next = first; gateway.clock.nowMs() < endMs || next !== undefined; next = undefined) {
      const name = next ?? own.pick(Object.keys(ACTS));
      await ACTS[name]!(gateway, own);
      acts.set(name, (acts.get(name) ?? 0) + 1);
    }
  };
  const neighbour = async (own: Prng): Promise<void> => {
    while (gateway.clock.nowMs() < endMs) {
      const { text } = own.pick(THEIRS);
      const body = { prompt: recallPrompt(own, text, own.between(150, 600)), max_tokens: MARKER_CHARACTERS };
      const answer = await askCompletion({ url: gateway.url, key: GLOBEX_KEY, body }).answered;
      assert.deepEqual([answer.status, answer.error], [200, null]);
      assert.ok(answer.text.length >= 1, 'an answer of its own');
      if (answer.text === text) answered++;
      assert.ok(
        gateway.gateway.engines[0]!.watch.rotation.isIn,
        `out: ${gateway.gateway.engines[0]!.watch.rotation.reason}`,
      );
    }
  };
  try {
    const lanes = Array.from({ length: LANES }, (_, index) => lane(chance.fork(), Object.keys(ACTS)[index]));
    await Promise.all([...lanes, neighbour(chance.fork())]);
    await until(gateway.clock, 'all back', () => idle(gateway), 10_000);
    const sentinels = gateway.requests.filter(({ tenant }) => tenant > 2).length;
    context.diagnostic(
      `${[...acts.values()].reduce((a, b) => a + b)} acts; ${answered} answers to the other; ${sentinels} sentinels`,
    );
    assert.equal(acts.size, Object.keys(ACTS).length, 'not everything was tried');
    assert.ok(answered >= 1, `only ${answered} answers`);
    assert.ok(sentinels <= 1 + (SECONDS * 1000) / SENTINEL_EVERY_MS);
    const worst = gateway.findings.filter(({ severity }) => severity === 'critical' || severity === 'high');
    assert.deepEqual(worst, []);
    const metrics = await gateway.gateway.metrics.registry.metrics();
    assert.match(metrics, /cofferdam_in_rotation\{engine="engine-1"\} 1\n/);
    assert.ok(!metrics.includes('cofferdam_rotation_exits_total{'));
  } finally {
    await gateway.close();
  }
});
