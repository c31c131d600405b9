/**
 * Goal: prompts are counted as engines count them, for vocabularies that models ship, and fast. Method: ids of our encoder
 * against those of the library in Rust that vLLM and SGLang use, over a mixed corpus and over hostile strings; bounds around
 * each count; speed beside that library and the one in JavaScript, alternated.
 *
 *   npm run test:tokenizer              all of it; the last line is `N passed, N failed`
 *   npm run test:tokenizer -- ids       without the measuring; `speed`: nothing but that
 *   SEED=n STRINGS=n npm run test:tokenizer    other strings, or as many of them
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SystemClock } from '../../src/base/clock.js';
import { threadCpuS } from '../../src/base/cpu.js';
import { Prng } from '../../src/base/prng.js';
import { CannotSplit } from '../../src/tokenizer/automaton.js';
import { ByteLevelTokenizer } from '../../src/tokenizer/text-tokenizer.js';
import { readTokenizer } from '../../src/tokenizer/tokenizer-file.js';
import { readTokenizerFolder } from '../../src/tokenizer/tokenizer-folder.js';
import { hostileText } from '../support/hostile-text.js';
import { mixedCorpus } from './corpus.js';
import {
  installPackages,
  loadRust,
  type RustTokenizer,
  VOCABULARIES,
  type VocabularyName,
  vocabularyFolder,
} from './packages.js';
import { type SpeedRow, speedOf, table } from './speed.js';

const SEED = Number(process.env.SEED ?? 20_000);
const STRINGS = Number(process.env.STRINGS ?? 100_000);
const BATCH_STRINGS = 1_000;
const CORPUS_BYTES = 4_000_000;
const HOSTILE_CHARACTERS = 1_000_000;
const HOSTILE_MS_MAX = 1_000;

const clock = new SystemClock();
const counts = { passed: 0, failed: 0 };
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

interface Vocabulary {
  readonly name: VocabularyName;
  readonly ours: ByteLevelTokenizer;
  readonly rust: RustTokenizer;
  readonly specials: readonly string[];
}

async function load(name: VocabularyName): Promise<Vocabulary> {
  const folder = vocabularyFolder(name);
  const plan = readTokenizer(readTokenizerFolder(folder));
  assert.equal(plan.kind, 'byte-level');
  const rust = await loadRust(join(folder, 'tokenizer.json'));
  return { name, ours: new ByteLevelTokenizer(plan), rust, specials: plan.added.map(({ content }) => content) };
}

/** The ids, or `otherwise` for a text that is refused. */
function encodeOr<T>(ours: ByteLevelTokenizer, text: string, otherwise: T): number[] | T {
  try {
    return ours.encode(text);
  } catch (thrown) {
    if (thrown instanceof CannotSplit) return otherwise;
    throw thrown;
  }
}

/** As a request's JSON arrives in an engine: without lone surrogates. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

async function sameIds({ ours, rust, specials, name }: Vocabulary): Promise<void> {
  const prng = new Prng(SEED);
  const wrong: string[] = [];
  let unknown = 0;
  for (let done = 0; done < STRINGS; ) {
    const texts = Array.from({ length: BATCH_STRINGS }, () => hostileText(prng, specials));
    const encodings = await rust.encodeBatch(texts.map(wellFormed), { addSpecialTokens: false });
    for (const [index, text] of texts.entries()) {
      const ids = encodeOr(ours, text, null);
      if (ids === null) {
        unknown++;
        continue;
      }
      done++;
      const expected = encodings[index]!.getIds();
      const { least, most } = ours.bounds(text, false);
      const isSame = ids.length === expected.length && ids.every((id, at) => id === expected[at]);
      if (!isSame || least > ids.length || most < ids.length || ours.count(text, false) !== ids.length) {
        wrong.push(`${JSON.stringify(text)}: ${ids.join()} within ${least} and ${most}, expected ${expected.join()}`);
      }
    }
  }
  say(`         not counted, for a character that is new in Unicode: ${unknown} more`);
  assert.deepEqual(wrong.slice(0, 5), [], `${wrong.length} of ${STRINGS} strings (${name})`);
}

/** Runs that other encoders take seconds or minutes for, or crash on. */
function linearOnHostileText({ ours }: Vocabulary): void {
  const prng = new Prng(SEED);
  const letters = Array.from({ length: HOSTILE_CHARACTERS }, () => String.fromCharCode(97 + prng.below(26))).join('');
  const texts = ['a', ' ', '\n', '=', '1', 'A', ' \n', "'s", '世', 'e\u0301', '<|'].map((text) =>
    text.repeat(HOSTILE_CHARACTERS / text.length),
  );
  const slow: string[] = [];
  for (const text of [...texts, letters]) {
    const startS = threadCpuS();
    const count = ours.count(text, false);
    const tookMs = (threadCpuS() - startS) * 1000;
    const shown = `${JSON.stringify(text.slice(0, 4))}… ${tookMs.toFixed(0)} ms (${count} tokens)`;
    say(`         ${shown}`);
    if (tookMs > HOSTILE_MS_MAX) slow.push(shown);
  }
  assert.deepEqual(slow, []);
}

async function checkIds(vocabulary: Vocabulary, corpus: string): Promise<void> {
  const { name, rust, ours } = vocabulary;
  const size = `${Buffer.byteLength(corpus)} bytes`;
  await check(`${name}: the ids of a mixed corpus of ${size} are those of the library in Rust`, async () => {
    const expected = (await rust.encode(corpus, null, { addSpecialTokens: false })).getIds();
    const ids = ours.encode(corpus);
    assert.equal(ids.length, expected.length);
    assert.ok(ids.every((id, at) => id === expected[at]));
  });
  await check(`${name}: so are those of ${STRINGS} hostile strings (seed ${SEED}), and the bounds hold`, () =>
    sameIds(vocabulary),
  );
  await check(`${name}: a million characters of one kind take less than ${HOSTILE_MS_MAX} ms of CPU`, () =>
    linearOnHostileText(vocabulary),
  );
}

async function main(part: string | undefined): Promise<void> {
  installPackages();
  const corpus = mixedCorpus(CORPUS_BYTES, SEED);
  const rows: SpeedRow[] = [];
  for (const name of VOCABULARIES) {
    const vocabulary = await load(name);
    if (part !== 'speed') await checkIds(vocabulary, corpus);
    if (part === 'ids') continue;
    const json = (file: string): object =>
      JSON.parse(readFileSync(join(vocabularyFolder(name), file), 'utf8')) as object;
    rows.push(...(await speedOf(name, corpus, vocabulary, json('tokenizer.json'), json('tokenizer_config.json'))));
  }
  if (rows.length > 0) say(table(rows));
}

try {
  await main(process.argv[2]);
} catch (thrown) {
  counts.failed++;
  say(`FAILED before the end: ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`);
}
process.exitCode = counts.failed > 0 ? 1 : 0;
say(`${counts.passed} passed, ${counts.failed} failed`);
