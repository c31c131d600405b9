/** The files of a model's folder that counting needs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import type { ChatTemplates } from './chat-template.js';
import { parseObject, type TokenizerTexts } from './tokenizer-file.js';

/** Texts of the files; null for one that is not there. */
export interface TokenizerFiles extends TokenizerTexts {
  readonly templates: ChatTemplates | null;
}

/** Vocabularies of 200,000 tokens take 28 MB. */
const FILE_BYTES_MAX = 256 * 1024 * 1024;

/** Throws `CodedError` (`usage`) where there is no tokenizer.json, or a file cannot be read. */
export function readTokenizerFolder(folder: string): TokenizerFiles {
  const tokenizer = read(folder, 'tokenizer.json');
  if (tokenizer === null) {
    throw new CodedError('usage', `Expected ${shown(folder)} to hold a tokenizer.json, found none there.`);
  }
  const config = read(folder, 'tokenizer_config.json');
  return { tokenizer, config, templates: templatesOf(folder, config) };
}

/** The places where models keep their template, the newest first, as `transformers` looks. */
function templatesOf(folder: string, config: string | null): ChatTemplates | null {
  const plain = read(folder, 'chat_template.jinja');
  if (plain !== null) {
    return { plain, withTools: read(join(folder, 'additional_chat_templates'), 'tool_use.jinja') };
  }
  const processor = read(folder, 'chat_template.json');
  const texts = [
    [config, 'tokenizer_config.json'],
    [processor, 'chat_template.json'],
  ] as const;
  for (const [text, name] of texts) {
    const found = text === null ? null : namedTemplates(parseObject(text, name).chat_template);
    if (found !== null) return found;
  }
  return null;
}

/** One template, or a list of named ones. */
function namedTemplates(value: unknown): ChatTemplates | null {
  if (typeof value === 'string') return { plain: value, withTools: null };
  if (!Array.isArray(value)) return null;
  const byName = new Map<unknown, unknown>();
  for (const { name, template } of value as { readonly name?: unknown; readonly template?: unknown }[]) {
    byName.set(name, template);
  }
  const plain = byName.get('default');
  const withTools = byName.get('tool_use');
  if (typeof plain !== 'string') return null;
  return { plain, withTools: typeof withTools === 'string' ? withTools : null };
}

function read(folder: string, name: string): string | null {
  try {
    const bytes = readFileSync(join(folder, name));
    if (bytes.length <= FILE_BYTES_MAX) return bytes.toString('utf8');
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new CodedError('usage', `Expected ${name} in ${shown(folder)} to be readable, got ${String(code)}.`);
  }
  throw new CodedError('usage', `Expected ${name} to have at most ${FILE_BYTES_MAX} bytes.`);
}
