import { CodedError } from '../base/errors.js';
import { shown, truncate } from '../base/text.js';
import type { Prompt, UpstreamFeature } from '../upstream/upstream.js';
import type { Route } from '../wire/openai.js';
import { PARAM_CHARACTERS_MAX, STOP_CHARACTERS_MAX, STOPS_MAX } from './bounds.js';
import { findEngineField, isEngineContainer, isEngineField, takeEngineFields } from './engine-fields.js';
import { readMessages } from './messages.js';
import { consistent, featureField } from './policy-features.js';

/** A body after the request policy: only what is known, with its types, and nothing of the body itself. */
export interface ParsedRequest {
  readonly route: Route;
  readonly model: string;
  readonly prompt: Prompt;
  /** Tokens; null: whatever is left of the context. */
  readonly maxTokens: number | null;
  readonly temperature: number;
  /** Null: one is drawn. */
  readonly seed: number | null;
  readonly stop: readonly string[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Fields that the engine's features allow, as they came; empty for plain text. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Empty unless the guard `policy` is off. */
  readonly engineFields: Readonly<Record<string, unknown>>;
}

/** Whether the answer may hold tool calls. */
export function asksForTools({ params }: ParsedRequest): boolean {
  return params.tools !== undefined;
}

/** Whether the answer may hold probabilities. */
export function asksForLogprobs({ params }: ParsedRequest): boolean {
  return params.logprobs !== undefined;
}

export interface PolicyRules {
  /** The guard `policy`: off, engine-internal fields pass and unknown ones are ignored. */
  readonly guarded: boolean;
  readonly models: readonly string[];
  /** What the engines that serve a model can be asked for. @default nothing beyond plain text */
  readonly features?: (model: string) => ReadonlySet<UpstreamFeature>;
  /** Where a request gives no temperature. */
  readonly temperatureDefault: number;
}

type Body = Readonly<Record<string, unknown>>;
/** Says what was expected of a value, or null when it is fine. Null values never come here: they count as absent. */
type Check = (value: unknown) => string | null;

const is =
  (test: (value: unknown) => boolean, words: string): Check =>
  (value) =>
    test(value) ? null : words;

const isBoolean = is((value) => typeof value === 'boolean', 'a boolean');
const isString = is((value) => typeof value === 'string', 'a string');
const onlyFalse = is((value) => value === false, '`false`, which is all that is served');
const onlyZero = is((value) => value === 0, '`0`, which is all that is served');
const onlyOne = is((value) => value === 1, '`1`, which is all that is served');
const onlyEmpty = is(
  (value) => typeof value === 'object' && Object.keys(value as object).length === 0,
  'nothing in it, since it is not served',
);
const never: Check = () => 'this field to be absent, since it is not served';
const oneOf = (...allowed: readonly unknown[]): Check =>
  is((value) => allowed.includes(value), `one of ${allowed.map((each) => `\`${String(each)}\``).join(', ')}`);
const read: Check = () => null;

/** Read elsewhere in this file, or harmless and ignored, or refused with a reason unless it asks for nothing. */
const COMMON: Readonly<Record<string, Check>> = {
  model: read,
  max_tokens: read,
  temperature: read,
  seed: read,
  stop: read,
  stream: read,
  stream_options: read,
  n: onlyOne,
  user: isString,
  metadata: is(isPlainObject, 'an object'),
  top_p: onlyOne,
  frequency_penalty: onlyZero,
  presence_penalty: onlyZero,
  logit_bias: onlyEmpty,
};

const CHAT: ReadonlyMap<string, Check> = new Map(
  Object.entries({
    ...COMMON,
    messages: read,
    max_completion_tokens: read,
    logprobs: onlyFalse,
    top_logprobs: onlyZero,
    response_format: is(
      (value) => isPlainObject(value) && value.type === 'text' && Object.keys(value).length === 1,
      '`{"type":"text"}`, which is all that is served',
    ),
    tools: onlyEmpty,
    functions: onlyEmpty,
    tool_choice: oneOf('none', 'auto'),
    function_call: oneOf('none', 'auto'),
    parallel_tool_calls: isBoolean,
    modalities: is(
      (value) => Array.isArray(value) && value.length === 1 && value[0] === 'text',
      '`["text"]`, which is all that is served',
    ),
    audio: never,
    prediction: never,
    reasoning_effort: never,
    verbosity: never,
    web_search_options: never,
    store: onlyFalse,
    service_tier: oneOf('auto', 'default'),
    safety_identifier: isString,
    prompt_cache_key: isString,
    prompt_cache_retention: isString,
  }),
);

const COMPLETIONS: ReadonlyMap<string, Check> = new Map(
  Object.entries({
    ...COMMON,
    prompt: read,
    best_of: onlyOne,
    echo: onlyFalse,
    logprobs: never,
    suffix: is((value) => value === '', 'nothing in it, since it is not served'),
  }),
);

/** The whole request policy. Throws CodedError with `param`; names fields and types, never contents of a prompt. */
export function readRequest(route: Route, body: Body, rules: PolicyRules): ParsedRequest {
  if (rules.guarded) refuseEngineFields(body);
  const known = rules.features?.(typeof body.model === 'string' ? body.model : '') ?? NO_FEATURES;
  const params = checkFields(route, body, known, rules.guarded);
  const stream = optional(body, 'stream', isBoolean) === true;
  return {
    route,
    model: readModel(body, rules.models),
    prompt:
      route === 'chat'
        ? readChat(body, params, { guarded: rules.guarded, features: known })
        : readTextPrompt(body.prompt),
    maxTokens: readMaxTokens(body),
    temperature: readTemperature(body, rules.temperatureDefault),
    seed: readSeed(body),
    stop: readStop(body),
    stream,
    includeUsage: readIncludeUsage(body, stream),
    params,
    engineFields: rules.guarded ? NONE : takeEngineFields(body),
  };
}

const NONE: Readonly<Record<string, unknown>> = Object.freeze({});
const NO_FEATURES: ReadonlySet<UpstreamFeature> = new Set();
/** Fields that a template may write into the prompt, besides the tools. */
const TEMPLATE_FIELDS: readonly string[] = [
  'tool_choice',
  'parallel_tool_calls',
  'reasoning_effort',
  'response_format',
];

function readChat(body: Body, params: Body, rules: Parameters<typeof readMessages>[1]): Prompt {
  if (params === NONE) return readMessages(body.messages, rules, [], NONE);
  const tools = (params.tools ?? []) as readonly unknown[];
  const fields: Record<string, unknown> = {};
  for (const name of TEMPLATE_FIELDS) if (params[name] !== undefined) fields[name] = params[name];
  return readMessages(body.messages, rules, tools, fields);
}

export function wrong(param: string, expected: string, value: unknown): CodedError {
  const name = truncate(param, PARAM_CHARACTERS_MAX);
  return new CodedError('invalid_request', `Expected \`${name}\` to be ${expected}, got ${kindOf(value)}.`, {
    param: name,
  });
}

/** Numbers and short literals may be shown; a string may be a prompt in the wrong field, so only its type is said. */
function kindOf(value: unknown): string {
  return typeof value === 'string' ? 'a string' : shown(value);
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refuseEngineFields(body: Body): void {
  const found = findEngineField(body);
  if (found === null) return;
  const param = truncate(found, PARAM_CHARACTERS_MAX);
  throw new CodedError('field_not_allowed', `Expected no engine-internal field, got ${shown(param)}; leave it out.`, {
    param,
  });
}

/** Gives what goes to the engine as it came; NONE for plain text. */
function checkFields(route: Route, body: Body, features: ReadonlySet<UpstreamFeature>, guarded: boolean): Body {
  const known = route === 'chat' ? CHAT : COMPLETIONS;
  let params: Record<string, unknown> | null = null;
  for (const name of Object.keys(body)) {
    const value = body[name];
    const asked = features.size === 0 ? undefined : featureField(route, name, features);
    if (asked === undefined) checkField(known.get(name), name, value, guarded);
    else if (value !== null) {
      asked.check(value, name);
      params ??= {};
      params[name] = value;
    }
  }
  return params === null ? NONE : consistent(params);
}

function checkField(check: Check | undefined, name: string, value: unknown, guarded: boolean): void {
  if (check === undefined) {
    if (!guarded || isEngineField(name) || isEngineContainer(name)) return;
    const param = truncate(name, PARAM_CHARACTERS_MAX);
    throw new CodedError('invalid_request', `Expected only known fields, got ${shown(param)}; leave it out.`, {
      param,
    });
  }
  const expected = value === null ? null : check(value);
  if (expected === null) return;
  throw check === never
    ? new CodedError('invalid_request', `Expected \`${name}\` to be absent, since it is not served.`, { param: name })
    : wrong(name, expected, value);
}

/** A field that may be absent or null; `undefined` then. */
function optional(body: Body, name: string, check: Check): unknown {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  const expected = check(value);
  if (expected !== null) throw wrong(name, expected, value);
  return value;
}

function readModel(body: Body, models: readonly string[]): string {
  const model = body.model;
  if (typeof model !== 'string') throw wrong('model', 'a string', model);
  if (models.includes(model)) return model;
  throw new CodedError(
    'model_not_found',
    `Expected \`model\` to be one of ${models.map((each) => `\`${each}\``).join(', ')}, got another name.`,
    { param: 'model' },
  );
}

function readTextPrompt(value: unknown): Prompt {
  const text: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof text !== 'string') throw wrong('prompt', 'a string, or an array of one string', value);
  return { kind: 'text', text };
}

const isTokenCount = is(
  (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 1,
  'a whole number of at least 1',
);

function readMaxTokens(body: Body): number | null {
  const older = optional(body, 'max_tokens', isTokenCount) as number | undefined;
  const newer = optional(body, 'max_completion_tokens', isTokenCount) as number | undefined;
  if (older !== undefined && newer !== undefined && older !== newer) {
    throw new CodedError('invalid_request', 'Expected `max_tokens` or `max_completion_tokens`, got both.', {
      param: 'max_tokens',
    });
  }
  return newer ?? older ?? null;
}

const isTemperature = is((value) => typeof value === 'number' && value >= 0 && value <= 2, 'a number from 0 to 2');

function readTemperature(body: Body, fallback: number): number {
  return (optional(body, 'temperature', isTemperature) as number | undefined) ?? fallback;
}

const isSeed = is((value) => typeof value === 'number' && Number.isSafeInteger(value), 'a whole number');

function readSeed(body: Body): number | null {
  return (optional(body, 'seed', isSeed) as number | undefined) ?? null;
}

function readStop(body: Body): readonly string[] {
  const value = body.stop;
  if (value === undefined || value === null) return [];
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const words = `a string of 1 to ${STOP_CHARACTERS_MAX} characters, or up to ${STOPS_MAX} of them`;
  if (list.length > STOPS_MAX || !list.every(isStop)) throw wrong('stop', words, value);
  return list;
}

function isStop(value: unknown): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= STOP_CHARACTERS_MAX && wellFormed(value);
}

/** No lone surrogate: what is held back for a stop must never be half a character. */
function wellFormed(text: string): boolean {
  return !/[\ud800-\udfff]/u.test(text);
}

function readIncludeUsage(body: Body, stream: boolean): boolean {
  const options = body.stream_options;
  if (options === undefined || options === null) return false;
  if (!stream) {
    throw new CodedError('invalid_request', 'Expected `stream_options` only together with `stream: true`.', {
      param: 'stream_options',
    });
  }
  if (!isPlainObject(options)) throw wrong('stream_options', 'an object', options);
  for (const name of Object.keys(options)) {
    if (name === 'include_usage' || name === 'include_obfuscation') continue;
    const param = truncate(`stream_options.${name}`, PARAM_CHARACTERS_MAX);
    throw new CodedError('invalid_request', `Expected only known fields, got ${shown(param)}; leave it out.`, {
      param,
    });
  }
  const wanted = options.include_usage;
  if (wanted === undefined || wanted === null) return false;
  if (typeof wanted !== 'boolean') throw wrong('stream_options.include_usage', 'a boolean', wanted);
  return wanted;
}
