/** The file of a run, read again: whole, or as far as it goes. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import type { JournalRecord } from './journal.js';
import { RecordBuilder, type RunRecord } from './record.js';
import { readRecord } from './record-parse.js';

/** Bytes of a record: a million requests are some 600 MB; with the texts of all of them it may be more. */
const RECORD_BYTES_MAX = 4 * 1024 ** 3;
/** Bytes of one line: a prompt of a million characters, kept as text, and its answer. */
const LINE_BYTES_MAX = 32 * 1024 ** 2;
const CHUNK_BYTES = 1024 ** 2;
const NEW_LINE = 10;

export interface ReadRun {
  readonly record: RunRecord;
  /** Took all of it, and can take what is written behind it. */
  readonly builder: RecordBuilder;
  /** The number of the last request. */
  readonly lastId: number;
  /** Bytes of the file up to the end of its last whole record, and whether a line ends there. */
  readonly wholeBytes: number;
  readonly endsInLine: boolean;
  /** What is to be said about it: cut, or never ended. */
  readonly notes: readonly string[];
}

const usage = (flag: string, words: string): CodedError =>
  new CodedError('usage', `Expected \`${flag}\` to name a record of \`cofferdam probe\`, got ${words}`);

/** Throws CodedError `usage`, which names the line, where the file is none of a run. A last line that is cut is left out. */
export function readRun(path: string, flag: string): ReadRun {
  const file = open(path, flag);
  const builder = new RecordBuilder();
  const reader = new LineReader(path, flag, builder);
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    for (;;) {
      const read = readSync(file, buffer, 0, buffer.length, null);
      if (read === 0) break;
      reader.push(buffer.subarray(0, read));
    }
  } finally {
    closeSync(file);
  }
  const cut = reader.end();
  const record = builder.result();
  if (record === null) throw usage(flag, `a file without any: ${shown(path)}`);
  const notes: string[] = [];
  if (cut) notes.push('The last line of the record is cut and was left out.');
  if (!record.whole)
    notes.push('The record has no end: the run was killed, or still goes on. What is missing could not run.');
  return {
    record,
    builder,
    lastId: builder.lastId,
    wholeBytes: reader.wholeBytes,
    endsInLine: cut || reader.endsInLine,
    notes,
  };
}

function open(path: string, flag: string): number {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (thrown) {
    throw usage(flag, `${shown(path)}, which can not be read (${(thrown as NodeJS.ErrnoException).code ?? 'unknown'})`);
  }
  const { size } = fstatSync(file);
  if (fstatSync(file).isFile() && size <= RECORD_BYTES_MAX) return file;
  closeSync(file);
  throw usage(flag, `${shown(path)}, which is no file of at most ${RECORD_BYTES_MAX} bytes`);
}

class LineReader {
  readonly #path: string;
  readonly #flag: string;
  readonly #builder: RecordBuilder;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #line = 1;

  constructor(path: string, flag: string, builder: RecordBuilder) {
    this.#path = path;
    this.#flag = flag;
    this.#builder = builder;
  }

  /** Bytes of whole lines, and of the last one where it is whole without its end. */
  wholeBytes = 0;

  get endsInLine(): boolean {
    return this.#bytes === 0;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(NEW_LINE, from);
      if (at < 0) break;
      this.#keep(chunk.subarray(from, at));
      this.#take(false);
      from = at + 1;
    }
    this.#keep(chunk.subarray(from));
  }

  /** True: the last line was cut. */
  end(): boolean {
    return this.#bytes > 0 && !this.#take(true);
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#bytes += piece.length;
    if (this.#bytes > LINE_BYTES_MAX) throw this.#wrong(`a line of more than ${LINE_BYTES_MAX} bytes`);
    // The buffer behind it is used again.
    this.#pieces.push(Buffer.from(piece));
  }

  /** False: it is no JSON, and the last of the file. */
  #take(last: boolean): boolean {
    const line = Buffer.concat(this.#pieces).toString('utf8');
    if (line.trim() !== '') {
      const record = this.#read(line, last);
      if (record === 'cut') return false;
      if (record !== null) this.#builder.take(record);
    }
    this.wholeBytes += this.#bytes + (last ? 0 : 1);
    if (!last) {
      this.#pieces = [];
      this.#bytes = 0;
    }
    this.#line++;
    return true;
  }

  #read(line: string, last: boolean): JournalRecord | null | 'cut' {
    let parsed: unknown;
    try {
      parsed = JSON.parse(line);
    } catch {
      if (last && this.#builder.header !== null) return 'cut';
      throw this.#wrong('no JSON');
    }
    let record: JournalRecord | null;
    try {
      record = readRecord(parsed);
    } catch (thrown) {
      if (!(thrown instanceof CodedError)) throw thrown;
      throw this.#wrong(`a record that is not well-formed: ${thrown.message}`);
    }
    if (this.#builder.header === null && record?.record !== 'probe') throw this.#wrong('no header of a run');
    return record;
  }

  #wrong(words: string): CodedError {
    return usage(this.#flag, `${shown(this.#path)}, line ${this.#line}: ${words}`);
  }
}
