/**
 * Goal: other people's code reads what `cofferdam lab` writes, and computes from it what our engine computes. Method: export
 * through the command; llama.cpp, Hugging Face's tokenizers and templates, and the formats' Python libraries against our own.
 *
 *   npm run test:oracle            all of it; the last line is `N passed, N failed`
 *   SEED=n npm run test:oracle     other prompts
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { SystemClock } from '../../src/base/clock.js';
import { CHAT_TEMPLATE, vocabulary } from '../../src/model/export/byte-vocabulary.js';
import { checkpointTensors } from '../../src/model/export/checkpoint.js';
import { recallPrompt } from '../../src/model/fixture.test.help.js';
import { LAB_CONFIG, loadLabWeights } from '../../src/model/lab-weights.js';
import { decode, encode, renderChat } from '../../src/tokenizer/bytes.js';
import { clearSteps, type Compared, compare, referenceAnswer } from './greedy.js';
import * as packages from './packages.js';
import { readWithPython, whyNoPython } from './python.js';

const SEED = Number(process.env.SEED ?? 9000);
/** A smaller lead than this may turn by the order of float32 sums. */
const LEAD_NATS = 2;
const CLEAR_PROMPTS = 200;
const PROMPTS_MAX = 800;
/** llama.cpp's cache of one sequence: the longest prompt and its answer. */
const CONTEXT_TOKENS = 4352;
const BATCH_TOKENS = 512;
const MARKER_PROMPTS = 10;

const clock = new SystemClock();
const folder = mkdtempSync(join(tmpdir(), 'cofferdam-oracle-'));
const HF = join(folder, 'hf');
const GGUF = join(folder, 'lab.gguf');
const counts = { passed: 0, failed: 0, skipped: 0 };
const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function check(title: string, run: () => Promise<void> | void): Promise<void> {
  const startMs = clock.nowMs();
  try {
    await run();
    counts.passed++;
    say(`ok     ${title}  ${((clock.nowMs() - startMs) / 1000).toFixed(1)} s`);
  } catch (thrown) {
    counts.failed++;
    say(`FAILED ${title}\n${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`);
  }
}

function lab(...args: string[]): void {
  const ran = spawnSync(process.execPath, [join(packages.ROOT, 'dist/src/cli/main.js'), 'lab', ...args], {
    encoding: 'utf8',
  });
  assert.equal(ran.status, 0, ran.stderr);
}

const texts = [
  ...fc.sample(fc.string({ unit: 'binary', maxLength: 80 }), { seed: SEED, numRuns: 300 }),
  '<s>not the beginning</s> of <pad> anything',
  ' two  spaces\n\n\tand a tab\r\n',
  'é e\u0301 \u00ad\u00a0 字 💧 \u0000\u007f\ufeff',
].map((text) => Buffer.from(text).toString());

const messages = [
  { role: 'system', content: 'be brief\n' },
  { role: 'user', content: '  what is <s>{{ this }}</s>?' },
];

async function tokenizers(model: packages.LlamaModel): Promise<void> {
  await check(`llama.cpp gives ${texts.length} texts the tokens that the engine gives them`, () => {
    for (const text of texts) assert.deepEqual(model.tokenize(text), [...encode(text)], JSON.stringify(text));
  });
  await check('Hugging Face’s tokenizers in JavaScript do, and give the texts back', async () => {
    const tokenizer = await packages.loadHfTokenizer(HF);
    for (const text of texts) {
      // Its JavaScript has no way to leave specials in a text alone.
      if (/<\/?s>|<pad>/.test(text)) continue;
      const { ids } = tokenizer.encode(text, { add_special_tokens: false });
      assert.deepEqual(ids, [...encode(text)], JSON.stringify(text));
      // Its decoder drops a byte order mark, and takes no empty list.
      if (ids.length > 0 && !text.includes('\ufeff'))
        assert.equal(tokenizer.decode(ids, { skip_special_tokens: false }), text);
    }
    assert.deepEqual(tokenizer.encode('<s>a</s><pad>', { add_special_tokens: false }).ids, [256, 97, 257, 258]);
  });
  await check('the chat template, rendered by Jinja in JavaScript, is what the engine renders', async () => {
    const template = await packages.loadJinja(CHAT_TEMPLATE);
    assert.equal(template.render({ messages, add_generation_prompt: true }), renderChat(messages));
    assert.equal(template.render({ messages }), renderChat(messages).slice(0, -'assistant: '.length));
  });
}

/** Both answers to a prompt, where they part. */
function shown({ seed, reference, ours }: Compared): string {
  const at = ours.findIndex((token, step) => token !== reference.tokens[step]);
  const lead = reference.leads[at]?.toFixed(3);
  const text = (tokens: readonly number[]): string => JSON.stringify(decode(tokens.slice(at, at + 12)));
  return `seed ${seed}, step ${at}, lead ${lead} nats: ${text(reference.tokens)}, ours ${text(ours)}`;
}

const sameUpTo = ({ reference, ours }: Compared, steps: number): boolean =>
  reference.tokens.slice(0, steps).every((token, step) => token === ours[step]);

function report(all: readonly Compared[], isClear: (one: Compared) => boolean): void {
  for (const kind of new Set(all.map(({ prompt }) => prompt.kind))) {
    const some = all.filter(({ prompt }) => prompt.kind === kind);
    const clear = some.filter(isClear);
    const others = some.filter((one) => !isClear(one));
    const equal = others.filter((one) => sameUpTo(one, one.reference.tokens.length)).length;
    say(`         ${kind}: ${clear.length} clear; ${others.length} others, of which ${equal} equal all the same`);
  }
  const others = all.filter((one) => !isClear(one));
  const parted = others.filter((one) => !sameUpTo(one, one.reference.tokens.length));
  say(`       not counted, for a lead below ${LEAD_NATS} nats at some step: ${others.length} of ${all.length} prompts`);
  for (const one of parted) say(`         parted: ${shown(one)}`);
}

async function greedyTokens(context: packages.LlamaContext): Promise<void> {
  const options = { firstSeed: SEED, clear: CLEAR_PROMPTS, nats: LEAD_NATS, promptsMax: PROMPTS_MAX };
  const all = await compare({ ...options, sequence: context.getSequence() });
  const isClear = (one: Compared): boolean => clearSteps(one.reference, LEAD_NATS) === one.reference.tokens.length;
  const clear = all.filter(isClear);
  await check(`greedy tokens equal llama.cpp's over ${clear.length} prompts (seed ${SEED})`, () => {
    assert.ok(clear.length >= CLEAR_PROMPTS, `only ${clear.length} of ${all.length} prompts are clear`);
    const wrong = clear.filter((one) => !sameUpTo(one, one.reference.tokens.length));
    assert.deepEqual(wrong.map(shown), []);
  });
  await check(`in the other ${all.length - clear.length}, up to the first step that is not clear`, () => {
    const wrong = all.filter((one) => !sameUpTo(one, clearSteps(one.reference, LEAD_NATS)));
    assert.deepEqual(wrong.map(shown), []);
  });
  report(all, isClear);
}

async function markers(model: packages.LlamaModel): Promise<void> {
  const context = await model.createContext({ contextSize: CONTEXT_TOKENS, batchSize: BATCH_TOKENS, threads: 1 });
  const sequence = context.getSequence();
  await check(
    `llama.cpp as it comes (KV in float16) recalls ${MARKER_PROMPTS} markers of 30 characters whole`,
    async () => {
      for (let seed = SEED; seed < SEED + MARKER_PROMPTS; seed++) {
        const { ids, marker } = recallPrompt(seed);
        const { tokens } = await referenceAnswer(sequence, ids);
        assert.equal(decode(tokens).slice(0, marker.length), marker, `seed ${seed}`);
      }
    },
  );
  await context.dispose();
}

async function python(): Promise<void> {
  const why = whyNoPython();
  if (why !== null) {
    counts.skipped++;
    return say(`skipped: the formats' Python libraries (${why})`);
  }
  const answer = readWithPython(HF, GGUF, { texts, messages });
  const sha256 = (data: Float32Array): string =>
    createHash('sha256')
      .update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
      .digest('hex');
  const tensors = checkpointTensors(LAB_CONFIG, loadLabWeights());
  await check('the safetensors library in Python finds every tensor, bit for bit', () => {
    const expected = tensors.map(({ hfName, shape, data }) => [`${hfName}.weight`, ['float32', shape, sha256(data)]]);
    assert.deepEqual(answer.safetensors, Object.fromEntries(expected));
    assert.deepEqual(answer.thetaTypes, ['float', 'float']);
  });
  await check('the gguf library in Python finds every tensor and token', () => {
    assert.deepEqual(answer.ggufTokens, vocabulary());
    assert.equal(Object.keys(answer.gguf).length, tensors.length);
    for (const { ggufName, shape, data, turnedHeads } of tensors) {
      const [type, found, digest] = answer.gguf[`${ggufName}.weight`]!;
      assert.deepEqual([type, found], ['float32', shape], ggufName);
      if (turnedHeads === 0) assert.equal(digest, sha256(data), ggufName);
    }
  });
  await check('the tokenizers library in Python gives the engine’s tokens, also for texts that hold specials', () => {
    assert.deepEqual(
      answer.ids,
      texts.map((text) => [...encode(text)]),
    );
    assert.deepEqual(answer.texts, texts);
    assert.deepEqual(answer.specials, [256, 257, 258]);
  });
  await check(
    'the chat template, rendered by Jinja in Python as transformers sets it up, is what the engine renders',
    () => {
      assert.equal(answer.chat, renderChat(messages));
    },
  );
}

async function main(): Promise<void> {
  packages.installPackages();
  say(`reference: ${packages.llamaVersion()}, CPU, one thread, weights and KV in float32`);
  await check('the command writes both formats', () => {
    lab('--format', 'hf', HF);
    lab('--format', 'gguf', GGUF);
    assert.equal(readFileSync(GGUF).subarray(0, 4).toString(), 'GGUF');
  });
  const llama = await packages.loadLlama();
  const model = await llama.loadModel({ modelPath: GGUF });
  await tokenizers(model);
  const context = await model.createContext({
    contextSize: CONTEXT_TOKENS,
    batchSize: BATCH_TOKENS,
    threads: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: 'F32',
    experimentalKvCacheValueType: 'F32',
  });
  assert.equal(context.kvCacheKeyType, 0, 'keys are kept in float32');
  await greedyTokens(context);
  await context.dispose();
  await markers(model);
  await llama.dispose();
  await python();
}

try {
  await main();
} catch (thrown) {
  counts.failed++;
  say(`FAILED before the end: ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = counts.failed > 0 ? 1 : 0;
say(`${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`);
