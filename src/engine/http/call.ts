/** From a body to what the engine is asked to do. Unknown fields are ignored, as SGLang ignores them; what would change the answer and can't be done is refused. */
import { createHash, randomBytes } from 'node:crypto';
import { encode, renderChat, VOCAB_SIZE } from '../../tokenizer/bytes.js';
import { numberAsWritten } from '../../wire/index.js';
import { ECHO_CHARACTERS_MAX, STOP_CHARACTERS_MAX, STOPS_MAX } from './bounds.js';
import { badRequest } from './failure.js';

export type CallRoute = 'chat' | 'completions' | 'generate';

export interface EngineCall {
  readonly route: CallRoute;
  readonly id: string;
  readonly model: string;
  readonly prompt: Int32Array;
  readonly maxTokens: number;
  /** 0: greedy. */
  readonly temperature: number;
  readonly seed: number;
  readonly stops: readonly string[];
  readonly ignoreEos: boolean;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Every chunk of a stream carries the usage so far. */
  readonly usageInChunks: boolean;
  /** Null: none was given. */
  readonly room: bigint | null;
  /** Prompts share cached prefixes only under one salt; empty: none was given. */
  readonly salt: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** SGLang's own defaults. */
const GENERATE_TOKENS_DEFAULT = 128;
const COMPLETION_TOKENS_DEFAULT = 16;
const TEMPERATURE_DEFAULT = 1;
const TEMPERATURE_MAX = 100;
const SEED_MAX = 2 ** 31 - 1;
const ROOM_MAX = 2n ** 63n - 1n;

/** Fields that ask for something this engine does not have; their neutral values pass. */
const ABSENT_FEATURES = [
  'logprobs',
  'top_logprobs',
  'return_logprob',
  'echo',
  'suffix',
  'tools',
  'input_embeds',
  'image_data',
  'audio_data',
  'video_data',
  'lora_path',
  'session_params',
  'session_id',
  'custom_logit_processor',
  'return_hidden_states',
] as const;

/** Throws CodedError. `context` is in tokens. */
export function readCall(route: CallRoute, body: Fields, raw: Buffer, context: number): EngineCall {
  refuseAbsentFeatures(body);
  const sampling = route === 'generate' ? objectField(body, 'sampling_params') : body;
  const prompt = promptOf(route, body);
  const wanted = maxTokensOf(route, sampling);
  checkContext(prompt.length, wanted, context);
  const room = roomOf(body, raw);
  return {
    route,
    id: ridOf(body),
    model: echoed(body.model, 'lab'),
    prompt,
    maxTokens: wanted ?? defaultTokens(route, prompt.length, context),
    temperature: numberField(sampling, 'temperature', 0, TEMPERATURE_MAX) ?? TEMPERATURE_DEFAULT,
    seed:
      wholeField(sampling, route === 'generate' ? 'sampling_seed' : 'seed', 0, Number.MAX_SAFE_INTEGER) ?? drawSeed(),
    stops: stopsOf(sampling),
    ignoreEos: booleanField(sampling, 'ignore_eos'),
    stream: booleanField(body, 'stream'),
    includeUsage: booleanField(objectField(body, 'stream_options'), 'include_usage'),
    usageInChunks: booleanField(objectField(body, 'stream_options'), 'continuous_usage_stats'),
    room,
    salt: saltOf(body),
  };
}

/** The room of a body that may be refused otherwise, so that the partner can be told; null where there is none to read. */
export function roomIn(body: Fields, raw: Buffer): bigint | null {
  try {
    return roomOf(body, raw);
  } catch {
    return null;
  }
}

function refuseAbsentFeatures(body: Fields): void {
  for (const name of ABSENT_FEATURES) {
    if (!isNeutral(body[name])) throw badRequest(`Expected no \`${name}\`: this engine does not have it.`);
  }
  for (const [container, name] of [
    [body, 'n'],
    [body, 'best_of'],
    [objectField(body, 'sampling_params'), 'n'],
  ] as const) {
    const value = container[name];
    if (value !== undefined && value !== null && value !== 1) {
      throw badRequest(`Expected \`${name}\` to be 1: one request gives one answer here.`);
    }
  }
  const format = objectField(body, 'response_format').type;
  if (format !== undefined && format !== 'text') {
    throw badRequest('Expected `response_format` to be `text`: this engine has no grammars.');
  }
}

function isNeutral(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0 || value === '') return true;
  return Array.isArray(value) && value.length === 0;
}

/** SGLang's own two checks, made before the engine sees the request, guards or no guards. */
function checkContext(tokens: number, wanted: number | null, context: number): void {
  if (tokens >= context) {
    throw badRequest(
      `The prompt has ${tokens} tokens, and the model's context length is ${context} tokens: it must be shorter.`,
    );
  }
  if (wanted !== null && tokens + wanted > context) {
    throw badRequest(
      `The prompt has ${tokens} tokens and ${wanted} more were asked for, ${tokens + wanted} in all; the model's context length is ${context} tokens.`,
    );
  }
}

function defaultTokens(route: CallRoute, prompt: number, context: number): number {
  const left = context - prompt;
  if (route === 'chat') return left;
  return Math.min(left, route === 'generate' ? GENERATE_TOKENS_DEFAULT : COMPLETION_TOKENS_DEFAULT);
}

function maxTokensOf(route: CallRoute, sampling: Fields): number | null {
  const names = route === 'generate' ? ['max_new_tokens'] : ['max_completion_tokens', 'max_tokens'];
  for (const name of names) {
    const value = wholeField(sampling, name, 1, 2 ** 31 - 1);
    if (value !== null) return value;
  }
  return null;
}

function promptOf(route: CallRoute, body: Fields): Int32Array {
  const prompt = route === 'chat' ? chatPrompt(body) : textPrompt(route, body);
  if (prompt.length === 0) throw badRequest('Expected a prompt of at least one token, got none.');
  return prompt;
}

function textPrompt(route: CallRoute, body: Fields): Int32Array {
  const name =
    route === 'completions' ? 'prompt' : body.text === undefined || body.text === null ? 'input_ids' : 'text';
  const value = body[name];
  if (typeof value === 'string' && name !== 'input_ids') return encode(value);
  if (Array.isArray(value) && name !== 'text') {
    if (value.every((id) => Number.isInteger(id) && id >= 0 && id < VOCAB_SIZE)) return Int32Array.from(value);
    if (value.every((id) => typeof id === 'number')) {
      throw badRequest(`Expected token ids from 0 to ${VOCAB_SIZE - 1} in \`${name}\`, got another.`);
    }
  }
  if (Array.isArray(value)) throw badRequest(`Expected one prompt in \`${name}\`, got a list: batches are not served.`);
  if (value === undefined || value === null) {
    throw badRequest(`Expected \`${route === 'completions' ? 'prompt' : 'text` or `input_ids'}\`, got none.`);
  }
  throw badRequest(`Expected \`${name}\` to be ${name === 'input_ids' ? 'a list of token ids' : 'a text'}.`);
}

function chatPrompt(body: Fields): Int32Array {
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0) {
    throw badRequest('Expected `messages` to be a list of at least one message.');
  }
  return encode(renderChat(messages.map(messageOf)));
}

function messageOf(message: unknown): { role: string; content: string } {
  const fields = asFields(message);
  if (fields === null || typeof fields.role !== 'string') throw badRequest('Expected each message to have a `role`.');
  return { role: fields.role, content: contentOf(fields.content) };
}

function contentOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (content === null || content === undefined) return '';
  const words = 'Expected the `content` of a message to be a text, or a list of text parts.';
  if (!Array.isArray(content)) throw badRequest(words);
  return content
    .map((part) => {
      const text = asFields(part)?.text;
      if (typeof text !== 'string') throw badRequest(words);
      return text;
    })
    .join('');
}

function stopsOf(sampling: Fields): readonly string[] {
  const value = sampling.stop;
  if (value === undefined || value === null) return [];
  const stops: unknown[] = Array.isArray(value) ? value : [value];
  const fits = (stop: unknown): stop is string =>
    typeof stop === 'string' && stop.length > 0 && stop.length <= STOP_CHARACTERS_MAX;
  if (stops.length > STOPS_MAX || !stops.every(fits)) {
    throw badRequest(
      `Expected \`stop\` to be at most ${STOPS_MAX} texts of 1 to ${STOP_CHARACTERS_MAX} characters, got something else.`,
    );
  }
  return stops;
}

function roomOf(body: Fields, raw: Buffer): bigint | null {
  const value = body.bootstrap_room;
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) throw badRequest('Expected one `bootstrap_room`, got a list: batches are not served.');
  const digits = typeof value === 'number' ? numberAsWritten(raw, 'bootstrap_room') : null;
  const room = digits === null ? -1n : BigInt(digits);
  if (room >= 0n && room <= ROOM_MAX) return room;
  throw badRequest('Expected `bootstrap_room` to be a whole number from 0 to 2^63 - 1, got something else.');
}

/** Of `cache_salt` and `extra_key`, as SGLang keys its cache; in the fixed-length hex that the engine takes. */
function saltOf(body: Fields): string {
  const parts = [body.cache_salt, body.extra_key].map((part) => echoed(part, ''));
  if (parts.every((part) => part === '')) return '';
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

function ridOf(body: Fields): string {
  const { rid } = body;
  return typeof rid === 'string' && rid !== '' ? echoed(rid, '') : randomBytes(16).toString('hex');
}

function echoed(value: unknown, fallback: string): string {
  if (value === undefined || value === null || value === '') return fallback;
  if (typeof value === 'string' && value.length <= ECHO_CHARACTERS_MAX) return value;
  throw badRequest(
    `Expected \`model\`, \`rid\`, \`cache_salt\` and \`extra_key\` to be texts of at most ${ECHO_CHARACTERS_MAX} characters.`,
  );
}

function drawSeed(): number {
  return randomBytes(4).readUInt32BE() % SEED_MAX;
}

function wholeField(fields: Fields, name: string, min: number, max: number): number | null {
  const value = numberField(fields, name, min, max);
  if (value !== null && !Number.isInteger(value)) throw badRequest(`Expected \`${name}\` to be a whole number.`);
  return value;
}

function numberField(fields: Fields, name: string, min: number, max: number): number | null {
  const value = fields[name];
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' && value >= min && value <= max) return value;
  throw badRequest(`Expected \`${name}\` to be a number from ${min} to ${max}, got something else.`);
}

function booleanField(fields: Fields, name: string): boolean {
  const value = fields[name];
  if (value === undefined || value === null) return false;
  if (typeof value === 'boolean') return value;
  throw badRequest(`Expected \`${name}\` to be true or false, got something else.`);
}

function objectField(fields: Fields, name: string): Fields {
  const value = fields[name];
  if (value === undefined || value === null) return {};
  const object = asFields(value);
  if (object === null) throw badRequest(`Expected \`${name}\` to be an object, got something else.`);
  return object;
}

function asFields(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}
