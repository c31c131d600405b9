/**
 * Counts prompts as the engine will. Made once for a model, from the files of its folder:
 *
 *   const counter = PromptCounter.fromFolder('/models/qwen3');
 *   const bounds = counter.bounds(prompt);          // at once
 *   const tokens = await counter.exact(prompt);     // a long prompt on another thread
 *
 * Either answers `Uncountable` where no number is certain (a part that is not text, a template that is unknown or refuses): the
 * engine is to be asked then. Never a guess.
 */
import { type Clock, SystemClock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { CannotSplit } from './automaton.js';
import { ChatTemplate } from './chat-template.js';
import { CountingPool } from './counting-pool.js';
import { type Bounds, type Prompt, type Uncountable, uncountable } from './prompt.js';
import { newTextTokenizer, type TextTokenizer } from './text-tokenizer.js';
import { parseObject, readTokenizer, specialTexts } from './tokenizer-file.js';
import { readTokenizerFolder, type TokenizerFiles } from './tokenizer-folder.js';

/** Longer texts are counted on another thread: 64 KiB take some 3 ms. */
const INLINE_BYTES_MAX = 64 * 1024;
/** The library counts 1.5 MB/s. */
const INLINE_BYTES_MAX_LIBRARY = 4 * 1024;
/** Longer prompts are not counted. No context holds them, and their memory is some 20 times their bytes. */
const TEXT_BYTES_MAX = 16 * 1024 * 1024;
/** The library may take 7 s for as much. */
const TEXT_BYTES_MAX_LIBRARY = 1024 * 1024;

export interface PromptCounterOptions {
  /** Between the text parts of one content where the template takes one text. @default '\n', as vLLM does; SGLang puts a space. */
  readonly partSeparator?: string;
  /** Threads for long prompts. @default 2 */
  readonly threads?: number;
  /** Long prompts that may wait for a thread. @default 64 */
  readonly waitingMax?: number;
  /** The day that a template may write. @default the system's clock */
  readonly clock?: Clock;
}

interface Rendered {
  readonly text: string;
  readonly bytes: number;
  /** A text that is no chat has the engine's special tokens around it. */
  readonly isWhole: boolean;
}

export class PromptCounter {
  /** Why no chat can be counted; null where chats can. */
  readonly chatRefusal: string | null;
  readonly #tokenizer: TextTokenizer;
  readonly #template: ChatTemplate | null;
  readonly #pool: CountingPool;
  readonly #inlineBytesMax: number;
  readonly #textBytesMax: number;
  /** A prompt is asked for twice as a rule, bounds first; it is rendered once. */
  readonly #rendered = new WeakMap<Prompt, Rendered | Uncountable>();

  /** Throws `CodedError` (`usage`) where the folder has no tokenizer that is understood. */
  static fromFolder(folder: string, options: PromptCounterOptions = {}): PromptCounter {
    return new PromptCounter(readTokenizerFolder(folder), options);
  }

  /** Throws `CodedError` (`usage`) where the tokenizer is not understood. */
  constructor(files: TokenizerFiles, options: PromptCounterOptions = {}) {
    const plan = readTokenizer(files);
    try {
      this.#tokenizer = newTextTokenizer(plan);
    } catch {
      throw new CodedError(
        'usage',
        'Expected a tokenizer.json that @huggingface/tokenizers reads, got one that it does not.',
      );
    }
    const isOwn = plan.kind === 'byte-level';
    this.#inlineBytesMax = isOwn ? INLINE_BYTES_MAX : INLINE_BYTES_MAX_LIBRARY;
    this.#textBytesMax = isOwn ? TEXT_BYTES_MAX : TEXT_BYTES_MAX_LIBRARY;
    const template = newTemplate(files, options);
    this.#template = template instanceof ChatTemplate ? template : null;
    this.chatRefusal = template instanceof ChatTemplate ? null : template;
    this.#pool = new CountingPool({
      plan,
      threads: options.threads ?? 2,
      waitingMax: options.waitingMax ?? 64,
      waitingUnitsMax: 4 * TEXT_BYTES_MAX,
    });
  }

  /** Two numbers that the exact count lies between, in time linear in the prompt's bytes. */
  bounds(prompt: Prompt): Bounds | Uncountable {
    const rendered = this.#render(prompt);
    return 'kind' in rendered ? rendered : this.#tokenizer.bounds(rendered.text, rendered.isWhole);
  }

  /**
   * The engine's number. Up to 64 KiB it is there when this returns; above, another thread counts. Rejects with `CodedError`
   * `no_capacity` where too many wait, `shutting_down` after `close`, `internal_error` where a thread died.
   */
  async exact(prompt: Prompt): Promise<number | Uncountable> {
    const rendered = this.#render(prompt);
    if ('kind' in rendered) return rendered;
    const { text, bytes, isWhole } = rendered;
    if (bytes > this.#textBytesMax) return uncountable(`a prompt of more than ${this.#textBytesMax} bytes`);
    if (bytes > this.#inlineBytesMax) return this.#pool.count({ text, isWhole });
    try {
      return this.#tokenizer.count(text, isWhole);
    } catch (thrown) {
      if (thrown instanceof CannotSplit) return uncountable(thrown.message);
      throw thrown;
    }
  }

  /** Ends the threads; what they count is rejected. */
  close(): Promise<void> {
    return this.#pool.close();
  }

  #render(prompt: Prompt): Rendered | Uncountable {
    let rendered = this.#rendered.get(prompt);
    if (rendered === undefined) {
      rendered = this.#renderNow(prompt);
      this.#rendered.set(prompt, rendered);
    }
    return rendered;
  }

  #renderNow(prompt: Prompt): Rendered | Uncountable {
    const text = prompt.kind === 'text' ? prompt.text : this.#template?.render(prompt);
    if (text === undefined) return uncountable(this.chatRefusal!);
    if (typeof text !== 'string') return text;
    return { text, bytes: Buffer.byteLength(text), isWhole: prompt.kind === 'text' };
  }
}

/** The template, or why there is none. */
function newTemplate(files: TokenizerFiles, options: PromptCounterOptions): ChatTemplate | string {
  if (files.templates === null) return 'the model has no chat template';
  const config = files.config === null ? {} : parseObject(files.config, 'tokenizer_config.json');
  try {
    return new ChatTemplate({
      templates: files.templates,
      specials: specialTexts(config),
      partSeparator: options.partSeparator ?? '\n',
      clock: options.clock ?? new SystemClock(),
    });
  } catch {
    return 'the chat template is not understood';
  }
}
