/** A secret that has to be kept as it is, such as the key of an engine: shown nowhere, in no JSON either. */
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { readSmallFile } from '../config/file.js';
import { isKeyText, KEY_WANTED, sha256Hex } from './keys.js';
import { KEY_CHARACTERS_MAX } from './defaults.js';

export class SecretText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  /** Its digest, so that two configurations can be compared. */
  toJSON(): string {
    return `sha256:${sha256Hex(this.#text)}`;
  }

  toString(): string {
    return '(secret)';
  }
}

/** Where a secret is to be found, followed to it; or what came instead, in words. `path`: of a file, already absolute. */
export function findSecret(
  source: { readonly kind: 'env'; readonly name: string } | { readonly kind: 'file'; readonly path: string },
  variables: Readonly<Record<string, string | undefined>>,
): SecretText | string {
  const text = source.kind === 'env' ? (variables[source.name] ?? '') : fileText(source.path);
  if (typeof text !== 'string') return text.came;
  if (text === '') return 'nothing';
  return isKeyText(text) ? new SecretText(text) : `${text.length} characters that are not ${KEY_WANTED}`;
}

function fileText(path: string): string | { readonly came: string } {
  const read = readSmallFile(path, KEY_CHARACTERS_MAX + 2);
  return typeof read === 'string' ? { came: read } : read.toString('latin1').replace(/\r?\n$/, '');
}

/** `env:VAR` or `file:PATH` of a flag. Throws CodedError `usage`, without what came where that may be a key. */
export function parseSecretFlag(
  flag: string,
  text: string,
  variables: Readonly<Record<string, string | undefined>>,
): SecretText {
  const name = /^env:([A-Za-z_][A-Za-z0-9_]{0,127})$/.exec(text)?.[1];
  const path = /^file:(.{1,4095})$/.exec(text)?.[1];
  if (name === undefined && path === undefined) {
    throw new CodedError('usage', `Expected \`${flag}\` to be \`env:NAME\` or \`file:PATH\`, got something else`);
  }
  const found = findSecret(name === undefined ? { kind: 'file', path: path ?? '' } : { kind: 'env', name }, variables);
  if (typeof found !== 'string') return found;
  const where = name === undefined ? `the file ${shown(path)}` : `the variable \`${name}\``;
  throw new CodedError('usage', `Expected ${where}, named by \`${flag}\`, to hold a key, got ${found}`);
}
