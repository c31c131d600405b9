import { CodedError } from '../base/errors.js';
import { shown, truncate } from '../base/text.js';
import type { Prompt } from '../upstream/upstream.js';
import { MESSAGES_MAX } from './bounds.js';

interface Message {
  readonly role: string;
  readonly content: string;
}

const ROLES: ReadonlySet<string> = new Set(['system', 'developer', 'user', 'assistant']);
/** Fields of an answer that a client sends back as they came; they must ask for nothing. */
const EMPTY_FIELDS: ReadonlySet<string> = new Set(['refusal', 'tool_calls', 'function_call', 'audio', 'annotations']);

/** The messages of a chat, text only. Throws CodedError `invalid_request` with the path of what was wrong. */
export function readMessages(value: unknown, guarded: boolean): Prompt {
  if (!Array.isArray(value) || value.length === 0 || value.length > MESSAGES_MAX) {
    throw wrongAt('messages', `an array of 1 to ${MESSAGES_MAX} messages`);
  }
  const messages: Message[] = [];
  for (let i = 0; i < value.length; i++) messages.push(readMessage(value[i], i, guarded));
  return { kind: 'chat', messages };
}

function wrongAt(param: string, expected: string): CodedError {
  return new CodedError('invalid_request', `Expected \`${param}\` to be ${expected}.`, { param });
}

function unknownAt(path: string, name: string): CodedError {
  const param = truncate(`${path}.${name}`, 120);
  return new CodedError('invalid_request', `Expected only known fields, got ${shown(param)}; leave it out.`, { param });
}

function asRecord(value: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrongAt(path, 'an object');
  return value as Record<string, unknown>;
}

function readMessage(value: unknown, index: number, guarded: boolean): Message {
  const path = `messages[${index}]`;
  const record = asRecord(value, path);
  for (const name of Object.keys(record)) checkMessageField(record[name], name, path, guarded);
  const role = record.role;
  if (typeof role !== 'string' || !ROLES.has(role)) {
    throw wrongAt(`${path}.role`, 'one of `system`, `developer`, `user`, `assistant`');
  }
  const content = record.content;
  return { role, content: typeof content === 'string' ? content : readParts(content, `${path}.content`, guarded) };
}

function checkMessageField(value: unknown, name: string, path: string, guarded: boolean): void {
  if (name === 'role' || name === 'content') return;
  if (name === 'name') {
    if (typeof value !== 'string' && value !== null) throw wrongAt(`${path}.name`, 'a string');
    return;
  }
  if (EMPTY_FIELDS.has(name)) {
    const empty = value === null || (Array.isArray(value) && value.length === 0);
    if (!empty) throw wrongAt(`${path}.${name}`, 'empty, since it is not served');
    return;
  }
  if (guarded) throw unknownAt(path, name);
}

function readParts(value: unknown, path: string, guarded: boolean): string {
  if (!Array.isArray(value) || value.length === 0) throw wrongAt(path, 'a string, or an array of text parts');
  let text = '';
  for (let i = 0; i < value.length; i++) {
    const at = `${path}[${i}]`;
    const part = asRecord(value[i], at);
    if (part.type !== 'text') throw wrongAt(`${at}.type`, '`text`, which is all that is served');
    if (typeof part.text !== 'string') throw wrongAt(`${at}.text`, 'a string');
    for (const name of Object.keys(part)) if (guarded && name !== 'type' && name !== 'text') throw unknownAt(at, name);
    text += part.text;
  }
  return text;
}
