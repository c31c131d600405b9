import type { Prompt, RichChat, UpstreamFeature } from '../upstream/upstream.js';
import {
  DATA_CHARACTERS_MAX,
  DATA_PARTS_MAX,
  MESSAGES_MAX,
  TOOL_CALL_ID_CHARACTERS_MAX,
  TOOL_CALLS_MAX,
} from './bounds.js';
import { isGiven, isName, recordAt, unknownAt, wrongAt } from './policy-features.js';

type Json = Readonly<Record<string, unknown>>;

interface Message {
  readonly role: string;
  /** Its text alone. */
  readonly content: string;
}

/** A message as an engine gets it, and whether it holds more than its text. */
interface Reading {
  readonly message: Message;
  readonly rich: Json;
  readonly isRich: boolean;
}

interface Rules {
  /** Unknown fields are refused; else they are ignored. */
  readonly guarded: boolean;
  readonly features: ReadonlySet<UpstreamFeature>;
}

const ROLES: ReadonlySet<string> = new Set(['system', 'developer', 'user', 'assistant']);
/** Fields of an answer that a client sends back as they came; where they are not served they must ask for nothing. */
const EMPTY_FIELDS: ReadonlySet<string> = new Set(['refusal', 'tool_calls', 'function_call', 'audio', 'annotations']);
/** What clients' helpers add to an answer, and send back with it; nothing of it goes on. */
const CLIENT_FIELDS: ReadonlySet<string> = new Set(['parsed']);
const REASONING_FIELDS: ReadonlySet<string> = new Set(['reasoning_content', 'reasoning']);
/** Between the texts of one message: they stand in different places of the rendered prompt. */
const NOTHING = '';

/**
 * The messages of a chat: text, and what the features allow beside it. `fields` may stand in the prompt too, with the tools. Throws
 * CodedError `invalid_request` with the path of what was wrong.
 */
export function readMessages(value: unknown, rules: Rules, tools: readonly unknown[], fields: Json): Prompt {
  if (!Array.isArray(value) || value.length === 0 || value.length > MESSAGES_MAX) {
    throw wrongAt('messages', `an array of 1 to ${MESSAGES_MAX} messages`);
  }
  const data = new DataParts();
  const readings = value.map((each: unknown, at) => readMessage(each, `messages[${at}]`, rules, data));
  const messages = readings.map(({ message }) => message);
  if (tools.length === 0 && Object.keys(fields).length === 0 && !readings.some(({ isRich }) => isRich))
    return { kind: 'chat', messages };
  const rich: RichChat = { messages: readings.map((each) => each.rich), tools, fields, hasData: data.count > 0 };
  return { kind: 'chat', messages, rich };
}

function readMessage(value: unknown, path: string, rules: Rules, data: DataParts): Reading {
  const record = recordAt(value, path);
  const role = readRole(record.role, path, rules.features);
  const extra: Record<string, unknown> = {};
  for (const name of Object.keys(record)) {
    const kept = readField(record, name, role, path, rules);
    if (kept !== undefined) extra[name] = kept;
  }
  if (role === 'tool' && extra.tool_call_id === undefined) throw wrongAt(`${path}.tool_call_id`, 'a string');
  const isOptional = extra.tool_calls !== undefined;
  const content = readContent(record.content, `${path}.content`, rules, role === 'user' ? data : null, isOptional);
  const text = typeof content === 'string' ? content : textOf(content);
  const isRich = role === 'tool' || typeof content !== 'string' || Object.keys(extra).length > 0;
  return { message: { role, content: text }, rich: { role, content, ...extra }, isRich };
}

function readRole(role: unknown, path: string, features: ReadonlySet<UpstreamFeature>): string {
  const hasTools = features.has('tools');
  if (typeof role === 'string' && (ROLES.has(role) || (role === 'tool' && hasTools))) return role;
  const words = 'one of `system`, `developer`, `user`, `assistant`';
  throw wrongAt(`${path}.role`, hasTools ? `${words}, \`tool\`` : words);
}

/** A field besides role and content, as it goes to the engine; undefined: it does not. */
function readField(record: Json, name: string, role: string, path: string, { guarded, features }: Rules): unknown {
  if (name === 'role' || name === 'content') return undefined;
  const value = record[name];
  const at = `${path}.${name}`;
  if (name === 'name') {
    if (typeof value !== 'string' && value !== null) throw wrongAt(at, 'a string');
    return undefined;
  }
  if (name === 'tool_calls' && role === 'assistant' && features.has('tools')) return readToolCalls(value, at);
  if (name === 'tool_call_id' && role === 'tool') return readCallId(value, at);
  if (REASONING_FIELDS.has(name) && role === 'assistant' && features.has('reasoning')) {
    if (isGiven(value) && typeof value !== 'string') throw wrongAt(at, 'a string');
    return value === '' || value === null ? undefined : value;
  }
  if (CLIENT_FIELDS.has(name)) return undefined;
  if (EMPTY_FIELDS.has(name)) {
    const empty = value === null || (Array.isArray(value) && value.length === 0);
    if (!empty) throw wrongAt(at, 'empty, since it is not served');
    return undefined;
  }
  if (guarded) throw unknownAt(path, name);
  return undefined;
}

function readCallId(value: unknown, path: string): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= TOOL_CALL_ID_CHARACTERS_MAX) return value;
  throw wrongAt(path, `a string of 1 to ${TOOL_CALL_ID_CHARACTERS_MAX} characters`);
}

/** Calls of an earlier answer; undefined for none. */
function readToolCalls(value: unknown, path: string): unknown {
  if (value === null || (Array.isArray(value) && value.length === 0)) return undefined;
  if (!Array.isArray(value) || value.length > TOOL_CALLS_MAX)
    throw wrongAt(path, `an array of at most ${TOOL_CALLS_MAX} calls`);
  return value.map((each: unknown, index) => {
    const at = `${path}[${index}]`;
    // Clients that gather a stream keep the place of each call.
    const call = recordAt(each, at, ['id', 'type', 'function', 'index']);
    if (isGiven(call.type) && call.type !== 'function') throw wrongAt(`${at}.type`, '`function`');
    const named = recordAt(call.function, `${at}.function`, ['name', 'arguments', 'parsed_arguments']);
    if (!isName(named.name)) throw wrongAt(`${at}.function.name`, 'the name of a function');
    if (typeof named.arguments !== 'string') throw wrongAt(`${at}.function.arguments`, 'a string');
    const id = readCallId(call.id, `${at}.id`);
    return { id, type: 'function', function: { name: named.name, arguments: named.arguments } };
  });
}

type Part = { readonly type: 'text'; readonly text: string } | DataPart;
type DataPart = Json & { readonly type: 'image_url' | 'input_audio' | 'file' };

/** `data` is null where only text may stand. Text parts alone come as one string. */
function readContent(
  value: unknown,
  path: string,
  { guarded, features }: Rules,
  data: DataParts | null,
  isOptional: boolean,
): string | readonly Part[] {
  if (typeof value === 'string') return value;
  if (isOptional && !isGiven(value)) return NOTHING;
  if (!Array.isArray(value) || value.length === 0) throw wrongAt(path, 'a string, or an array of text parts');
  const parts = value.map((each: unknown, index): Part => {
    const at = `${path}[${index}]`;
    const part = recordAt(each, at);
    if (part.type === 'text') return readTextPart(part, at, guarded);
    if (data === null || !features.has('data-parts'))
      throw wrongAt(`${at}.type`, '`text`, which is all that is served');
    return data.read(part, at);
  });
  return parts.every(isText) ? textOf(parts) : parts;
}

function readTextPart(part: Json, at: string, guarded: boolean): Part {
  if (typeof part.text !== 'string') throw wrongAt(`${at}.text`, 'a string');
  for (const name of Object.keys(part)) if (guarded && name !== 'type' && name !== 'text') throw unknownAt(at, name);
  return { type: 'text', text: part.text };
}

function isText(part: Part): part is { type: 'text'; text: string } {
  return part.type === 'text';
}

function textOf(parts: readonly Part[]): string {
  let text = '';
  for (const part of parts) if (isText(part)) text += part.text;
  return text;
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const IMAGE_HEAD = /^data:image\/(?:png|jpeg|gif|webp);base64,/;
const FILE_HEAD = /^data:[a-z]+\/[a-z0-9.+-]{1,100};base64,/;

/** Images, sound and files in a request itself, over all its messages. By address they are refused: an engine would fetch them. */
class DataParts {
  count = 0;
  #characters = 0;

  read(part: Json, at: string): DataPart {
    if (++this.count > DATA_PARTS_MAX) throw wrongAt(at, `one of at most ${DATA_PARTS_MAX} parts that are no text`);
    if (part.type === 'image_url') return this.#image(part, at);
    if (part.type === 'input_audio') return this.#audio(part, at);
    if (part.type === 'file') return this.#file(part, at);
    throw wrongAt(`${at}.type`, 'one of `text`, `image_url`, `input_audio`, `file`');
  }

  #image(part: Json, at: string): DataPart {
    recordAt(part, at, ['type', 'image_url']);
    const image = recordAt(part.image_url, `${at}.image_url`, ['url', 'detail']);
    this.#data(image.url, `${at}.image_url.url`, IMAGE_HEAD, 'a `data:` URL of a PNG, JPEG, GIF or WebP in base64');
    const { detail } = image;
    if (isGiven(detail) && detail !== 'auto' && detail !== 'low' && detail !== 'high')
      throw wrongAt(`${at}.image_url.detail`, 'one of `auto`, `low`, `high`');
    return { type: 'image_url', image_url: image };
  }

  #audio(part: Json, at: string): DataPart {
    recordAt(part, at, ['type', 'input_audio']);
    const audio = recordAt(part.input_audio, `${at}.input_audio`, ['data', 'format']);
    this.#data(audio.data, `${at}.input_audio.data`, null, 'base64');
    if (audio.format !== 'wav' && audio.format !== 'mp3')
      throw wrongAt(`${at}.input_audio.format`, 'one of `wav`, `mp3`');
    return { type: 'input_audio', input_audio: audio };
  }

  #file(part: Json, at: string): DataPart {
    recordAt(part, at, ['type', 'file']);
    const file = recordAt(part.file, `${at}.file`, ['file_data', 'filename']);
    this.#data(file.file_data, `${at}.file.file_data`, FILE_HEAD, 'a `data:` URL in base64');
    const { filename } = file;
    if (isGiven(filename) && (typeof filename !== 'string' || !isName(filename)))
      throw wrongAt(`${at}.file.filename`, 'a name of letters, digits, `_`, `-` and `.`');
    return { type: 'file', file };
  }

  #data(value: unknown, path: string, head: RegExp | null, words: string): void {
    if (typeof value !== 'string') throw wrongAt(path, words);
    this.#characters += value.length;
    if (this.#characters > DATA_CHARACTERS_MAX)
      throw wrongAt(path, `within ${DATA_CHARACTERS_MAX} characters of data in one request`);
    const begin = head === null ? '' : (head.exec(value)?.[0] ?? null);
    if (begin === null || !BASE64.test(value.slice(begin.length))) throw wrongAt(path, words);
  }
}
