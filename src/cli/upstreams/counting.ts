/** By what prompts are counted: the files of a tokenizer, our own engine's bytes, or the engine itself. */
import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { countTokens, renderChat } from '../../tokenizer/bytes.js';
import { PromptCounter } from '../../tokenizer/prompt-counter.js';
import type { Prompt as CountedPrompt, Uncountable } from '../../tokenizer/prompt.js';
import { CodedError } from '../../base/errors.js';
import { type AskEngine, COUNT_BYTES_MAX, COUNT_MS_MAX } from '../../upstream/counted-there.js';
import { EndpointReader, type ReaderOptions } from '../../upstream/poll.js';
import type { Prompt, PromptCount } from '../../upstream/upstream.js';
import type { UpstreamOption } from '../upstream-options.js';
import type { Detected, DetectedKind } from './detect.js';

export type Count = (prompt: Prompt) => PromptCount;

export interface Counting {
  /** Null: the engine counts by itself. */
  readonly count: Count | null;
  /** For the start's lines. */
  readonly words: string;
  /** The same for what counts alike; null: nothing is known to. */
  readonly name: string | null;
}

/** Our own engine's tokens are bytes, and its template is known. */
const BYTES: Counting = {
  count: (prompt) => ({
    kind: 'exact',
    tokens: countTokens(prompt.kind === 'text' ? prompt.text : renderChat(prompt.messages)),
  }),
  words: 'by bytes',
  name: 'bytes',
};
const BY_ENGINE: Counting = { count: null, words: 'by the engine itself', name: null };

/** Between the text parts of one message, as each engine joins them where the template takes one text. */
const PART_SEPARATORS: Readonly<Partial<Record<DetectedKind, string>>> = { sglang: ' ', router: ' ' };
const PART_SEPARATOR = '\n';

/** What counts for the engines of one server. One tokenizer is held once, however many engines it counts for. */
export class Countings {
  readonly #counters = new Map<string, PromptCounter>();
  readonly #readers: EndpointReader[] = [];

  /**
   * `byEngine`: the engine's own count, for prompts that the files do not settle, such as such with images; null: it has none. Throws
   * CodedError `usage` where the folder has no tokenizer that is understood.
   */
  of(option: Pick<UpstreamOption, 'tokenizer'>, detected: Detected, byEngine: Count | null): Counting {
    const folder = tokenizerFolder(option, detected);
    if (folder === null) return detected.countsBytes ? BYTES : BY_ENGINE;
    const partSeparator = PART_SEPARATORS[detected.kind] ?? PART_SEPARATOR;
    const name = JSON.stringify([folder, partSeparator]);
    const counter = this.#counters.get(name) ?? PromptCounter.fromFolder(folder, { partSeparator });
    this.#counters.set(name, counter);
    if (byEngine === null && counter.chatRefusal !== null) {
      const change = 'Put the model’s `chat_template` beside it.';
      throw new CodedError(
        'usage',
        `Expected a chat template in ${folder}, got none: ${counter.chatRefusal}. ${change}`,
      );
    }
    const words = `by the tokenizer in ${folder}${byEngine === null ? '' : ', or by the engine where that does not settle it'}`;
    return { count: (prompt) => countWith(counter, prompt, byEngine), words, name: byEngine === null ? name : null };
  }

  /** How an engine is asked for a count. */
  asking(options: ReaderOptions): AskEngine {
    const reader = new EndpointReader({ ...options, msMax: COUNT_MS_MAX, bytesMax: COUNT_BYTES_MAX });
    this.#readers.push(reader);
    return (path, body) => reader.post(path, body);
  }

  async close(): Promise<void> {
    for (const reader of this.#readers) reader.close();
    await Promise.all([...this.#counters.values()].map((counter) => counter.close()));
  }
}

/** Null: none. A name of a model hub is no folder here. */
function tokenizerFolder(option: Pick<UpstreamOption, 'tokenizer'>, detected: Detected): string | null {
  if (option.tokenizer !== null) return option.tokenizer;
  const named = detected.tokenizerPath;
  return named !== null && isAbsolute(named) && existsSync(join(named, 'tokenizer.json')) ? named : null;
}

function countWith(counter: PromptCounter, prompt: Prompt, byEngine: Count | null): PromptCount {
  const counted = countedPrompt(prompt, byEngine !== null);
  const bounds = 'why' in counted ? counted : counter.bounds(counted);
  if (bounds.kind === 'uncountable' || 'why' in counted) {
    if (byEngine === null) throw uncountable(bounds as Uncountable);
    return byEngine(prompt);
  }
  let exact: Promise<number> | null = null;
  return {
    kind: 'bounds',
    least: bounds.least,
    most: Math.min(bounds.most, Number.MAX_SAFE_INTEGER),
    exact: () => (exact ??= exactOf(counter, counted)),
  };
}

/** With all that a template may write. What no file settles is left to the engine, where it counts. */
function countedPrompt(prompt: Prompt, engineCounts: boolean): CountedPrompt | Uncountable {
  if (prompt.kind === 'text' || prompt.rich === undefined) return prompt;
  const { messages, tools, fields, hasData } = prompt.rich;
  if (hasData) return NO_TEXT;
  const { reasoning_effort: effort, ...others } = fields;
  if (engineCounts && Object.keys(others).length > 0) return LEFT_TO_ENGINE;
  return {
    kind: 'chat',
    messages,
    tools: tools as readonly object[],
    ...(effort === undefined ? {} : { variables: { reasoning_effort: effort } }),
  };
}

const NO_TEXT: Uncountable = { kind: 'uncountable', why: 'a part that is no text' };
const LEFT_TO_ENGINE: Uncountable = { kind: 'uncountable', why: 'a field that the engine may write into the prompt' };

async function exactOf(counter: PromptCounter, prompt: CountedPrompt): Promise<number> {
  const tokens = await counter.exact(prompt);
  if (typeof tokens === 'number') return tokens;
  throw uncountable(tokens);
}

function uncountable({ why }: Uncountable): CodedError {
  return new CodedError(
    'invalid_request',
    `Expected a prompt whose tokens can be counted, got one that cannot be: ${why}.`,
  );
}
