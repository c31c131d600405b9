/** Keys on the command line. A key is hashed as soon as it is read, and never shown: not in an error either. */
import { createHash } from 'node:crypto';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { KEY_CHARACTERS_MAX, TENANT_NAME_CHARACTERS_MAX, TENANTS_MAX } from './defaults.js';

export interface KeyOption {
  /** SHA-256 of the key, 64 hex digits in lower case. The first 12 are its fingerprint. */
  readonly sha256: string;
  readonly from: 'variable' | 'file' | 'digest' | 'literal';
}

export interface TenantOption {
  readonly name: string;
  /** At least one; each lets the tenant in, and the first is the one that is shown by its fingerprint. */
  readonly keys: readonly KeyOption[];
}

export interface KeySurroundings {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Whether every listener is on loopback: only then may a key stand on the command line. */
  readonly loopback: boolean;
}

const usage = (message: string): CodedError => new CodedError('usage', message);

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** `env:VAR`, `sha256:HEX64` or the key itself. `flag` names where it stands, without the key. */
export function parseKey(text: string, flag: string, surroundings: KeySurroundings): KeyOption {
  if (text.startsWith('env:')) {
    const name = text.slice('env:'.length);
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)) {
      throw usage(`Expected \`${flag}\` to name a variable after \`env:\`, got ${shown(name)}`);
    }
    const value = surroundings.variables[name];
    if (value === undefined || value === '') {
      throw usage(`Expected the variable \`${name}\`, named by \`${flag}\`, to hold a key, got nothing`);
    }
    return { sha256: sha256Hex(checkKey(value, `the variable \`${name}\``)), from: 'variable' };
  }
  if (text.startsWith('sha256:')) {
    const hex = text.slice('sha256:'.length).toLowerCase();
    if (!/^[0-9a-f]{64}$/.test(hex)) {
      throw usage(`Expected \`${flag}\` to have 64 hex digits after \`sha256:\`, got ${hex.length} characters`);
    }
    return { sha256: hex, from: 'digest' };
  }
  const key = checkKey(text, `\`${flag}\``);
  if (!surroundings.loopback) {
    const better = '`env:VAR` or `sha256:HEX`';
    throw usage(`Expected \`${flag}\` to be ${better} when a listener is beyond loopback, got a key itself`);
  }
  return { sha256: sha256Hex(key), from: 'literal' };
}

export const KEY_WANTED: string = `1 to ${KEY_CHARACTERS_MAX} printable ASCII characters without spaces`;

/** What can stand in an `Authorization` header, within a bound. */
export function isKeyText(key: string): boolean {
  return key.length <= KEY_CHARACTERS_MAX && /^[\x21-\x7e]+$/.test(key);
}

function checkKey(key: string, where: string): string {
  if (isKeyText(key)) return key;
  throw usage(`Expected ${where} to hold a key of ${KEY_WANTED}, got ${key.length} characters`);
}

/** `NAME=KEY`, each name and each key once. */
export function parseTenants(texts: readonly string[], surroundings: KeySurroundings): TenantOption[] {
  if (texts.length > TENANTS_MAX)
    throw usage(`Expected at most ${TENANTS_MAX} times \`--tenant\`, got \`${texts.length}\``);
  const tenants: TenantOption[] = [];
  for (const text of texts) {
    const tenant = parseTenant(text, surroundings);
    for (const other of tenants) {
      if (other.name === tenant.name) throw usage(`Expected each tenant once, got \`${tenant.name}\` twice`);
      if (other.keys[0]?.sha256 === tenant.keys[0]?.sha256) {
        throw usage(
          `Expected each tenant to have a key of its own, got one key for \`${other.name}\` and \`${tenant.name}\``,
        );
      }
    }
    tenants.push(tenant);
  }
  return tenants;
}

function parseTenant(text: string, surroundings: KeySurroundings): TenantOption {
  const at = text.indexOf('=');
  // What has no `=` may be a key: it is not shown.
  if (at < 0) throw usage('Expected `--tenant` to be NAME=KEY, got a value without `=`');
  const name = text.slice(0, at);
  if (!/^[a-z0-9][a-z0-9_-]*$/.test(name) || name.length > TENANT_NAME_CHARACTERS_MAX) {
    const wanted = `1 to ${TENANT_NAME_CHARACTERS_MAX} of a-z, 0-9, \`-\` and \`_\``;
    throw usage(`Expected the NAME in \`--tenant NAME=KEY\` to be ${wanted}, got ${shown(name)}`);
  }
  return { name, keys: [parseKey(text.slice(at + 1), `--tenant ${name}=…`, surroundings)] };
}
