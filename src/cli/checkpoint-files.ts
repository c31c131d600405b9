/** Writes the files of a checkpoint: whole or not at all, and over nothing that was there unless asked to. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { CodedError } from '../base/errors.js';
import { escapeControl, truncate } from '../base/text.js';
import type { CheckpointFile } from '../model/export/checkpoint.js';

/** A path in a message is cut here; long enough to find the place. */
const PATH_SHOWN_CHARACTERS_MAX = 200;
/** Keeps two runs at once from writing into one temporary file. */
const TEMPORARY_BYTES = 6;

export interface WriteOptions {
  /** Replaces files of the same names. */
  readonly force: boolean;
  /** How bytes get into an open file, as `fs.writeSync` does it; tests hand in one that fails. */
  readonly write?: (file: number, bytes: Uint8Array, offset: number) => number;
}

/**
 * Makes `folder` where it is missing and writes `files` into it: first all of them under temporary names, then, when each is on
 * the disk, renamed in order. What went wrong leaves nothing behind but files that were replaced before. Throws CodedError `usage`.
 */
export function writeCheckpoint(folder: string, files: readonly CheckpointFile[], options: WriteOptions): void {
  const undo: (() => void)[] = [];
  try {
    makeFolder(folder, undo);
    const replaced = files.map((file) => isReplaced(folder, file.name, options.force));
    const suffix = `.${randomBytes(TEMPORARY_BYTES).toString('hex')}.tmp`;
    for (const file of files) writeTemporary(join(folder, `.${file.name}${suffix}`), file, options, undo);
    files.forEach(({ name }, index) => {
      const path = join(folder, name);
      renameSync(join(folder, `.${name}${suffix}`), path);
      if (!replaced[index]) undo.push(() => rmSync(path));
    });
  } catch (thrown) {
    for (const step of undo.reverse()) quietly(step);
    throw inWords(thrown, folder, files);
  }
}

/** On the way back from a failure, a second one would hide the first. */
function quietly(step: () => void): void {
  try {
    step();
  } catch (thrown) {
    if (errorCode(thrown) === null) throw thrown;
  }
}

/**
 * Folder by folder, outermost first. Not with `recursive`: where a parent is there and takes no folder (`/proc`), Node tries
 * that without end.
 */
function makeFolder(folder: string, undo: (() => void)[]): void {
  const missing: string[] = [];
  for (let path = resolve(folder); statSync(path, { throwIfNoEntry: false }) === undefined; path = dirname(path)) {
    missing.push(path);
  }
  for (const path of missing.reverse()) {
    mkdirSync(path);
    undo.push(() => rmdirSync(path));
  }
  if (!statSync(folder).isDirectory()) throw usage(notAFolder(folder));
}

/** Whether a file of this name is there, to be replaced. Throws where it may not or cannot be. */
function isReplaced(folder: string, name: string, force: boolean): boolean {
  const found = lstatSync(join(folder, name), { throwIfNoEntry: false });
  if (found === undefined) return false;
  const place = `\`${shownPath(folder)}\``;
  const file = `\`${shownPath(name)}\``;
  if (found.isDirectory()) throw usage(`Expected ${file} in ${place} to be a file or missing, got a folder`);
  if (!force) {
    throw usage(
      `Expected ${place} to have no ${file} yet, got one. Choose another DIR, or replace it with \`--force\``,
    );
  }
  return true;
}

function writeTemporary(path: string, file: CheckpointFile, options: WriteOptions, undo: (() => void)[]): void {
  const write = options.write ?? writeSync;
  const open = openSync(path, 'wx', 0o644);
  undo.push(() => rmSync(path, { force: true }));
  try {
    for (const bytes of file.chunks()) {
      for (let offset = 0; offset < bytes.length; ) offset += write(open, bytes, offset);
    }
    // A disk that is full may say so only here.
    fsyncSync(open);
  } finally {
    closeSync(open);
  }
}

const usage = (message: string): CodedError => new CodedError('usage', message);

function errorCode(thrown: unknown): string | null {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : null;
}

function shownPath(path: string): string {
  return truncate(escapeControl(path), PATH_SHOWN_CHARACTERS_MAX);
}

function notAFolder(folder: string): string {
  return `Expected \`${shownPath(folder)}\` to be a folder, or missing, got a file in the place of a folder`;
}

/** What the system said, as what to change. Anything else is a defect and stays what it is. */
function inWords(thrown: unknown, folder: string, files: readonly CheckpointFile[]): unknown {
  if (thrown instanceof CodedError) return thrown;
  const place = `\`${shownPath(folder)}\``;
  const code = errorCode(thrown);
  switch (code) {
    case null:
      return thrown;
    case 'EEXIST':
    case 'ENOTDIR':
      return usage(notAFolder(folder));
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return usage(`Expected ${place} to be a folder that can be written, got one that the system protects (${code})`);
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG': {
      const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
      return usage(
        `Expected space for ${bytes} bytes in ${place}, got too little (${code}); nothing is left of the try`,
      );
    }
    default:
      return usage(`Expected ${place} to be a folder that can be written, got the error ${code}`);
  }
}
