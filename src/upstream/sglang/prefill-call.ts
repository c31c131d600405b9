import type { ErrorCode } from '../../base/errors.js';
import type { GuardName } from '../../handoff/guards.js';
import { EngineCall, type EngineCallOptions, type EngineCallSink } from '../engine-call.js';
import { errorKind } from '../openai/read.js';
import { errorOf } from '../openai/run.js';
import { asList, asShape, field } from '../shapes.js';
import { sglangError } from './errors.js';

/** What prefill's answer says: its own count of the prompt, or why there is none. */
export type PrefillAnswer = { readonly kind: 'done'; readonly promptTokens: number } | PrefillFailure;

export interface PrefillFailure {
  readonly kind: 'failed';
  readonly code: ErrorCode;
  /** For operators: kinds and lengths, no word of the engine's. */
  readonly detail: string;
  readonly guard: GuardName | null;
  /** Whether the connection failed, rather than the request; and whether no byte of an answer had come. */
  readonly isFault: boolean;
  readonly isTransport: boolean;
}

/** Of prefill's answer, which holds one token. */
export const PREFILL_BYTES_MAX: number = 4 * 1024 * 1024;
const HTTP_OK = 200;
/** With one token of output nothing else ends an answer. */
const REASONS: ReadonlySet<unknown> = new Set(['length', 'stop', 'tool_calls']);

/** The prefill leg of a pair, asked for whole. `onAnswer` is called at most once, `onOver` exactly once and after it. */
export class PrefillCall implements EngineCallSink {
  readonly #call: EngineCall;
  readonly #onAnswer: (answer: PrefillAnswer) => void;
  readonly #onOver: () => void;
  readonly #body: Buffer[] = [];
  #status = 0;
  #isAborted = false;

  constructor(call: EngineCallOptions, onAnswer: (answer: PrefillAnswer) => void, onOver: () => void) {
    this.#onAnswer = onAnswer;
    this.#onOver = onOver;
    this.#call = new EngineCall({ ...call, bytesMax: PREFILL_BYTES_MAX }, this);
  }

  /** Nothing is wanted of it any more: `onAnswer` will not be called. */
  abort(): void {
    this.#isAborted = true;
    this.#call.abort();
  }

  answered(status: number): void {
    this.#status = status;
  }

  data(chunk: Buffer): void {
    this.#body.push(chunk);
  }

  over(failure: string | null): void {
    if (!this.#isAborted) this.#onAnswer(this.#answer(failure));
    this.#onOver();
  }

  #answer(failure: string | null): PrefillAnswer {
    if (failure === null) return readPrefillAnswer(this.#status, this.#body);
    const code = this.#status === 0 ? 'engine_unavailable' : 'engine_failed';
    return {
      kind: 'failed',
      code,
      detail: `prefill: ${failure}`,
      guard: null,
      isFault: true,
      isTransport: this.#status === 0,
    };
  }
}

/** Pure. An error inside a 200 is an error, and so is an answer without a token, a count or a known end. */
export function readPrefillAnswer(status: number, body: readonly Buffer[]): PrefillAnswer {
  const value = parsed(body);
  if (status !== HTTP_OK) return failedStatus(status, errorOf(body));
  const answer = asShape(value);
  if (answer === null) return failed('engine_failed', `the answer is no JSON object (${bytesOf(body)} bytes)`);
  const error = field(answer, 'error') ?? null;
  if (error !== null || field(answer, 'object') === 'error') {
    const meaning = sglangError(null, error ?? answer);
    return failed(
      meaning?.code ?? 'engine_failed',
      `an error inside the answer (${errorKind(error ?? answer)})`,
      meaning?.guard,
    );
  }
  const choices = asList(field(answer, 'choices'));
  const choice = asShape(choices[0]);
  if (choices.length !== 1 || choice === null)
    return failed('engine_failed', `${choices.length} choices for one asked`);
  if (!REASONS.has(field(choice, 'finish_reason')))
    return failed('engine_failed', 'the answer did not end as one does');
  const usage = asShape(field(answer, 'usage'));
  const promptTokens = usage === null ? undefined : field(usage, 'prompt_tokens');
  if (!isCount(promptTokens)) return failed('verification_failed', 'the answer came without its count', 'usage');
  const made = usage === null ? undefined : field(usage, 'completion_tokens');
  if (isCount(made) && made < 1) return failed('engine_failed', 'the answer holds no token');
  return { kind: 'done', promptTokens };
}

function failedStatus(status: number, error: unknown): PrefillFailure {
  const detail = `status ${status}, ${error === undefined ? 'a body that is not JSON' : errorKind(error)}`;
  const meaning = sglangError(status, error);
  if (meaning !== null) return failed(meaning.code, detail, meaning.guard);
  if (status === 429) return failed('no_capacity', detail);
  return failed(status >= 502 && status <= 504 ? 'engine_unavailable' : 'engine_failed', detail);
}

function failed(code: ErrorCode, detail: string, guard: GuardName | null = null): PrefillFailure {
  return {
    kind: 'failed',
    code,
    detail: `prefill: ${detail}`,
    guard,
    isFault: code === 'engine_unavailable',
    isTransport: false,
  };
}

function parsed(body: readonly Buffer[]): unknown {
  try {
    return JSON.parse(Buffer.concat(body).toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

function bytesOf(body: readonly Buffer[]): number {
  return body.reduce((sum, chunk) => sum + chunk.length, 0);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
