/** What came back for one request, and how each of its parts is found: every string of it is searched, not only the text. */

export const OUTCOMES = ['answered', 'refused', 'hung', 'silent', 'left', 'cut', 'failed'] as const;

/**
 * answered: a whole answer with status 200 · refused: an error, whichever way it came · hung: no byte until the deadline · silent: a
 * 200, then nothing more until the deadline · left: we closed it, as planned · cut: it ended without an end · failed: no connection.
 */
export type Outcome = (typeof OUTCOMES)[number];

export interface AnswerUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Null: not said. */
  readonly cachedTokens: number | null;
}

export interface AnswerError {
  /** Only plain words; anything else is `unknown`. */
  readonly type: string;
  readonly code: string;
  /** Characters of its message; the message itself is searched and not kept. */
  readonly messageCharacters: number;
  /** Numbers in the message, first to last: the limit and the length, where it says them. */
  readonly numbers: readonly number[];
}

export interface Answer {
  /** `q-17`: ours, unique in a run. */
  readonly id: string;
  readonly tenant: string;
  readonly outcome: Outcome;
  /** Null: no head came. */
  readonly status: number | null;
  /** Milliseconds on the run's clock. */
  readonly sentMs: number;
  /** To the first byte of the body, and to its first text; null: none came. */
  readonly firstByteMs: number | null;
  readonly firstTextMs: number | null;
  readonly endMs: number;
  /** Whether it came as a stream of events; absent: not known. */
  readonly streamed?: boolean;
  /** The text of the answer proper. */
  readonly content: string;
  /** Every string of the answer by its place (`choices.*.delta.content`), pieces of a stream joined. */
  readonly strings: ReadonlyMap<string, string>;
  readonly usage: AnswerUsage | null;
  readonly finishReason: string | null;
  readonly error: AnswerError | null;
  readonly retryAfterS: number | null;
  /** Of an answer of `/v1/models`; null elsewhere. */
  readonly models: readonly ServedModel[] | null;
  /** The transfer parameters that the engine put into its answer, as they came; absent or null: none. Never recorded. */
  readonly transfer?: TransferParams | null;
}

/** `kv_transfer_params` of an answer: whoever holds them names pages of an engine. */
export type TransferParams = Readonly<Record<string, unknown>>;

export interface ServedModel {
  readonly id: string;
  /** Tokens; null: not said. */
  readonly maxModelLen: number | null;
}

const CONTENT_PLACES: readonly string[] = ['choices.*.delta.content', 'choices.*.message.content', 'choices.*.text'];
/** Characters of all strings of one answer; what comes after is not kept, and the answer counts as cut. */
const STRING_CHARACTERS_MAX = 16 * 1024 * 1024;
const DEPTH_MAX = 32;

/** Gathers the parts of one answer as its events come. */
export class AnswerReader {
  readonly strings: Map<string, string> = new Map();
  usage: AnswerUsage | null = null;
  finishReason: string | null = null;
  error: AnswerError | null = null;
  models: readonly ServedModel[] | null = null;
  transfer: TransferParams | null = null;
  /** Whether what came was not what an endpoint of this kind answers. */
  garbled = false;
  #characters = 0;

  /** One event of a stream or a whole body. True where it brought text. */
  take(json: string): boolean {
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch {
      this.#keep('(no JSON)', json);
      this.garbled = true;
      return false;
    }
    const before = this.content.length;
    this.#walk(value, '', 0);
    if (!isObject(value)) return false;
    if (value.error !== undefined && value.error !== null) this.error = readError(value.error);
    else if (typeof value.message === 'string' && value.choices === undefined) this.error = readError(value);
    this.usage = readUsage(value.usage) ?? this.usage;
    if (Array.isArray(value.data)) this.models = value.data.filter(isObject).map(readModel);
    if (isObject(value.kv_transfer_params)) this.transfer = value.kv_transfer_params;
    const choice = Array.isArray(value.choices) ? (value.choices[0] as unknown) : undefined;
    if (isObject(choice) && typeof choice.finish_reason === 'string') this.finishReason = word(choice.finish_reason);
    return this.content.length > before;
  }

  get content(): string {
    for (const place of CONTENT_PLACES) {
      const text = this.strings.get(place);
      if (text !== undefined && text !== '') return text;
    }
    return '';
  }

  #walk(value: unknown, place: string, depth: number): void {
    if (typeof value === 'string') this.#keep(place, value);
    else if (depth >= DEPTH_MAX) this.garbled = true;
    else if (Array.isArray(value)) for (const each of value) this.#walk(each, `${place}.*`, depth + 1);
    else if (isObject(value)) {
      for (const [name, each] of Object.entries(value))
        this.#walk(each, place === '' ? name : `${place}.${name}`, depth + 1);
    }
  }

  #keep(place: string, text: string): void {
    this.#characters += text.length;
    if (this.#characters > STRING_CHARACTERS_MAX) this.garbled = true;
    else this.strings.set(place, (this.strings.get(place) ?? '') + text);
  }
}

function readUsage(value: unknown): AnswerUsage | null {
  if (!isObject(value)) return null;
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens, prompt_tokens_details: details } = value;
  if (typeof promptTokens !== 'number' || typeof completionTokens !== 'number') return null;
  const cached = isObject(details) ? details.cached_tokens : undefined;
  return { promptTokens, completionTokens, cachedTokens: typeof cached === 'number' ? cached : null };
}

function readModel(value: Readonly<Record<string, unknown>>): ServedModel {
  const { id, max_model_len: length, meta } = value;
  // llama-server says it in `meta`.
  const said = length ?? (isObject(meta) ? meta.n_ctx : undefined);
  return { id: typeof id === 'string' ? id : '', maxModelLen: typeof said === 'number' && said > 0 ? said : null };
}

function readError(value: unknown): AnswerError {
  const { type, code, message } = isObject(value) ? value : { type: undefined, code: undefined, message: value };
  const text = typeof message === 'string' ? message : '';
  const numbers = (text.match(/\d{1,15}/g) ?? []).slice(0, 16).map(Number);
  return { type: word(type), code: word(code), messageCharacters: text.length, numbers };
}

/** A name or a number as it is; anything that could be a text is `unknown`. */
function word(value: unknown): string {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && /^[A-Za-z_.-]{1,40}$/.test(value) ? value : 'unknown';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
