/** Where a configuration file says that keys are to be found, followed to the keys; each is hashed at once and never shown. */
import { dirname, resolve } from 'node:path';
import { readSmallFile } from '../config/file.js';
import type { Mistake, Place } from '../config/mistake.js';
import { shown } from '../base/text.js';
import { isKeyText, KEY_WANTED, type KeyOption, sha256Hex, type TenantOption } from './keys.js';
import { CONFIG_KEYS_MAX, type FileValues } from './config-shape.js';
import { KEY_CHARACTERS_MAX } from './defaults.js';

export interface FoundKeys {
  readonly tenants: readonly TenantOption[];
  readonly opsKey: KeyOption | null;
  /** Files that hold keys, as absolute paths. */
  readonly files: readonly string[];
  readonly mistakes: readonly Mistake[];
}

export interface KeyWorld {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Of the configuration file: paths of keys begin in its folder. */
  readonly path: string;
}

const START: Place = { line: 1, column: 1 };

/** Follows every source; says all that is wrong with any of them, and with keys that are used twice. */
export function findKeys(values: FileValues, places: ReadonlyMap<string, Place>, world: KeyWorld): FoundKeys {
  const finder = new KeyFinder(places, world);
  const tenants = finder.tenants(values.tenants ?? []);
  const opsSource = values.operators?.key;
  const opsKey = opsSource === undefined ? null : finder.key(opsSource, 'operators.key', "the operators' key");
  return { tenants, opsKey, files: finder.files, mistakes: finder.mistakes };
}

class KeyFinder {
  readonly files: string[] = [];
  readonly mistakes: Mistake[] = [];
  readonly #places: ReadonlyMap<string, Place>;
  readonly #world: KeyWorld;
  /** Who a key belongs to, by its digest. */
  readonly #owners = new Map<string, { readonly owner: string; readonly at: Place }>();

  constructor(places: ReadonlyMap<string, Place>, world: KeyWorld) {
    this.#places = places;
    this.#world = world;
  }

  tenants(rows: NonNullable<FileValues['tenants']>): TenantOption[] {
    const names = new Map<string, Place>();
    const total = rows.reduce((sum, row) => sum + (row?.keys?.length ?? 0), 0);
    if (total > CONFIG_KEYS_MAX) {
      this.#wrong('tenants', `at most ${CONFIG_KEYS_MAX} keys of all tenants`, `${total}`, 'Take some of them out.');
      return [];
    }
    return rows.map((row, index) => {
      const path = `tenants[${index}]`;
      const { name = '', keys = [] } = row ?? {};
      if (name !== '') this.#nameOnce(name, `${path}.name`, names);
      const owner = name === '' ? `\`${path}\`` : `tenant \`${name}\``;
      const found = keys.map((source, key) =>
        source === undefined ? null : this.key(source, `${path}.keys[${key}]`, owner),
      );
      return { name, keys: found.filter((key) => key !== null) };
    });
  }

  #nameOnce(name: string, path: string, names: Map<string, Place>): void {
    const first = names.get(name);
    if (first !== undefined) {
      const came = `\`${name}\` again; the first is in line ${first.line}`;
      this.#wrong(path, 'each tenant once', came, 'Rename one, or put its keys under the first.');
    }
    names.set(name, first ?? this.#placeOf(path));
  }

  key(source: string, path: string, owner: string): KeyOption | null {
    const key = this.#follow(source, path);
    if (key === null) return null;
    const known = this.#owners.get(key.sha256);
    if (known !== undefined) {
      const expected = 'each key to be used once, by one owner';
      const came = `the key of ${known.owner} (line ${known.at.line}) for ${owner}`;
      this.#wrong(path, expected, came, 'Make a new key for one of them.');
    }
    this.#owners.set(key.sha256, known ?? { owner, at: this.#placeOf(path) });
    return key;
  }

  #follow(source: string, path: string): KeyOption | null {
    const at = source.indexOf(':');
    const rest = source.slice(at + 1);
    switch (source.slice(0, at)) {
      case 'env':
        return this.#variable(rest, path);
      case 'file':
        return this.#file(rest, path);
      default:
        return { sha256: rest.toLowerCase(), from: 'digest' };
    }
  }

  #variable(name: string, path: string): KeyOption | null {
    const value = this.#world.variables[name] ?? '';
    if (value === '') {
      const expected = `the variable \`${name}\`, named by \`${path}\`, to hold a key`;
      this.#wrong(path, expected, 'nothing', 'Set it where the server is started, or name another source.');
      return null;
    }
    return this.#hashed(value, `the variable \`${name}\``, path, 'variable');
  }

  #file(name: string, path: string): KeyOption | null {
    const absolute = resolve(dirname(this.#world.path), name);
    this.files.push(absolute);
    const read = readSmallFile(absolute, KEY_CHARACTERS_MAX + 2);
    if (typeof read === 'string') {
      const change = 'Write the key into it, as its only line, readable for the user that serves.';
      this.#wrong(path, `the file ${shown(name)}, named by \`${path}\`, to hold a key`, read, change);
      return null;
    }
    return this.#hashed(read.toString('latin1').replace(/\r?\n$/, ''), `the file ${shown(name)}`, path, 'file');
  }

  #hashed(key: string, where: string, path: string, from: KeyOption['from']): KeyOption | null {
    if (isKeyText(key)) return { sha256: sha256Hex(key), from };
    const expected = `${where}, named by \`${path}\`, to hold a key of ${KEY_WANTED}`;
    this.#wrong(path, expected, `${key.length} characters`, 'Make a key without blanks and line breaks.');
    return null;
  }

  #placeOf(path: string): Place {
    return this.#places.get(path) ?? START;
  }

  #wrong(path: string, expected: string, came: string, change: string): void {
    this.mistakes.push({ at: this.#placeOf(path), expected, came, change });
  }
}
