/** Files and folders: what is there is read, bounded; nothing outside the folder that was given is followed. */
import { type Dirent, lstatSync, openSync, readdirSync, readSync, closeSync, realpathSync, statSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { CodedError } from '../../base/errors.js';
import { shown } from '../../base/text.js';
import type { Skipped } from '../facts.js';

/** Bytes of one file that are read: a log's start is at its beginning, and its latest signs are lost beyond. */
export const FILE_BYTES_MAX = 16_777_216;
/** Files of all folders together. */
export const FILES_MAX = 50_000;
/** Bytes of all files together. */
export const FILES_BYTES_MAX = 1_073_741_824;
/** Folders inside folders. */
export const FOLDER_DEPTH_MAX = 20;

export interface FoundFile {
  readonly path: string;
  /** As it is shown: below the folder that was given. */
  readonly name: string;
  /** The folder that it lies in, for telling deployments apart. */
  readonly folder: string;
}

/** Folders that hold no deployment. */
const PASSED_OVER: ReadonlySet<string> = new Set(['.git', 'node_modules', '.svn', '.hg', '__pycache__']);

/** The files of one target. Throws `usage` when nothing is there. */
export function findFiles(target: string, skipped: Skipped[]): FoundFile[] {
  const stat = statSync(target, { throwIfNoEntry: false });
  if (stat === undefined)
    throw new CodedError('usage', `Expected a URL, a file or a folder, got ${shown(target)}, which is not there`);
  if (!stat.isDirectory()) return [{ path: target, name: basename(target), folder: '' }];
  const root = realpathSync(target);
  const found: FoundFile[] = [];
  walk(root, root, 0, found, skipped);
  return found;
}

function walk(folder: string, root: string, depth: number, found: FoundFile[], skipped: Skipped[]): void {
  const shownAs = relative(root, folder);
  if (depth > FOLDER_DEPTH_MAX) {
    skipped.push({ name: shownAs, why: `folders more than ${FOLDER_DEPTH_MAX} deep` });
    return;
  }
  for (const entry of entriesOf(folder, shownAs, skipped)) {
    const path = join(folder, entry.name);
    const name = relative(root, path);
    if (found.length >= FILES_MAX) {
      skipped.push({ name, why: `more than ${FILES_MAX} files; it and what follows is not read` });
      return;
    }
    if (entry.isSymbolicLink()) link(path, name, root, found, skipped);
    else if (entry.isDirectory() && !PASSED_OVER.has(entry.name)) walk(path, root, depth + 1, found, skipped);
    else if (entry.isFile()) found.push({ path, name, folder: basename(folder) });
  }
}

function entriesOf(folder: string, name: string, skipped: Skipped[]): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    skipped.push({ name, why: 'the folder cannot be read' });
    return [];
  }
}

/** A link to a file inside the folder is read (ConfigMaps are mounted so); one that leads out, or to a folder, is not. */
function link(path: string, name: string, root: string, found: FoundFile[], skipped: Skipped[]): void {
  try {
    const real = realpathSync(path);
    if (!real.startsWith(root + sep)) skipped.push({ name, why: 'a link out of the folder' });
    else if (lstatSync(real).isFile()) found.push({ path: real, name, folder: basename(join(path, '..')) });
  } catch {
    skipped.push({ name, why: 'a link that leads nowhere' });
  }
}

/** The text of a file, or why it is not read. Bytes that are no UTF-8 become U+FFFD. */
export function readText(path: string): { readonly text: string; readonly cut: boolean } | { readonly why: string } {
  let handle: number | null = null;
  try {
    if (!statSync(path).isFile()) return { why: 'no regular file' };
    handle = openSync(path, 'r');
    const size = Math.min(statSync(path).size, FILE_BYTES_MAX + 1);
    const bytes = Buffer.alloc(size);
    let length = 0;
    while (length < size) {
      const read = readSync(handle, bytes, length, size - length, length);
      if (read === 0) break;
      length += read;
    }
    const cut = length > FILE_BYTES_MAX;
    const whole = bytes.subarray(0, Math.min(length, FILE_BYTES_MAX));
    if (isBinary(whole)) return { why: 'binary' };
    return { text: whole.toString('utf8'), cut };
  } catch {
    return { why: 'cannot be read' };
  } finally {
    if (handle !== null) closeSync(handle);
  }
}

/** NUL bytes, but for a list of variables as `/proc/PID/environ` has them. */
function isBinary(bytes: Buffer): boolean {
  const head = bytes.subarray(0, 4096);
  if (!head.includes(0)) return false;
  return !/^[A-Za-z_]\w*=[^\0]*\0/.test(head.toString('latin1'));
}
