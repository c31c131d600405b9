/** Keys for tenants that were not named: made at the start, gone at the end. */
import { randomBytes } from 'node:crypto';
import { lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CodedError } from '../base/errors.js';
import { type KeyOption, sha256Hex, type TenantOption } from './keys.js';

const FRESH_TENANTS = ['acme', 'globex'] as const;
const KEY_BYTES = 24;

export interface FreshKeys {
  readonly tenants: readonly TenantOption[];
  /** By name; held only until they are shown. */
  readonly keys: ReadonlyMap<string, string>;
}

export function makeFreshKeys(): FreshKeys {
  const keys = new Map<string, string>();
  const tenants = FRESH_TENANTS.map((name) => {
    const key = `cof-${name}-${randomBytes(KEY_BYTES).toString('base64url')}`;
    keys.set(name, key);
    const option: KeyOption = { sha256: sha256Hex(key), from: 'digest' };
    return { name, keys: [option] };
  });
  return { tenants, keys };
}

export interface KeysFile {
  readonly path: string;
  remove(): void;
}

/** Folders of processes that were killed which one start removes. */
const LEFT_FOLDERS_MAX = 64;

/**
 * What a killed process leaves on disk is its keys file: keys that opened that process's port and nothing else, since every start
 * makes new ones. The next start under the same user removes it.
 */
export function removeLeftKeys(root: string = tmpdir()): number {
  let removed = 0;
  for (const name of readdirSync(root)) {
    const pid = /^cofferdam-keys-(\d+)-\w+$/.exec(name)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    try {
      const found = lstatSync(join(root, name));
      if (!found.isDirectory() || found.uid !== process.getuid?.()) continue;
      rmSync(join(root, name), { recursive: true, force: true });
    } catch {
      // Somebody else was faster, or it may not be removed: it is harmless, and the next start tries again.
      continue;
    }
    if (++removed >= LEFT_FOLDERS_MAX) break;
  }
  return removed;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Throws CodedError `usage` where there is no place for it. */
function newFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), `cofferdam-keys-${process.pid}-`));
  } catch (thrown) {
    const why = (thrown as NodeJS.ErrnoException).code ?? 'an error';
    throw new CodedError(
      'usage',
      `Expected a folder for the file of fresh keys in \`${tmpdir()}\`, got ${why}. Set \`TMPDIR\`, or name the tenants with \`--tenant\`.`,
    );
  }
}

/** A file of mode 0600 in a folder of its own, one `name=key` a line. */
export function writeKeysFile(keys: ReadonlyMap<string, string>): KeysFile {
  const folder = newFolder();
  removeLeftKeys();
  const path = join(folder, 'keys');
  const text = Array.from(keys, ([name, key]) => `${name}=${key}\n`).join('');
  writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
