/** The one file of a run, from which every other format is made: one JSON record a line, written as things happen. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import type { Answer } from './answer.js';
import type { Ask } from './client.js';
import type { ExperimentResult, Hit } from './result.js';

export const JOURNAL_VERSION = 1;

export interface JournalHeader {
  readonly record: 'probe';
  readonly version: typeof JOURNAL_VERSION;
  readonly tool: string;
  readonly runId: string;
  readonly startedAt: string;
  readonly endpoint: string;
  readonly model: string;
  readonly route: string;
  readonly tenants: readonly string[];
  readonly seed: number;
  readonly experiments: readonly string[];
}

export interface RequestRecord {
  readonly record: 'request';
  readonly experiment: string;
  readonly id: string;
  readonly tenant: string;
  /** Milliseconds since the run began. */
  readonly sentMs: number;
  readonly endMs: number;
  readonly prompt: Fingerprint;
  readonly maxTokens: number;
  readonly stream: boolean;
  readonly outcome: string;
  readonly status: number | null;
  readonly firstByteMs: number | null;
  readonly firstTextMs: number | null;
  readonly answer: Fingerprint;
  readonly usage: Answer['usage'];
  readonly finishReason: string | null;
  readonly error: Answer['error'];
  /** With `--keep-text` only. */
  readonly text?: { readonly prompt: string; readonly answer: string };
}

/** What is kept of a text: enough to see that two are the same. */
export interface Fingerprint {
  readonly characters: number;
  /** First 16 hex digits of the SHA-256. */
  readonly sha256: string;
}

export type JournalRecord =
  | JournalHeader
  | RequestRecord
  | ({ readonly record: 'hit' } & Hit)
  | ({ readonly record: 'experiment' } & ExperimentResult)
  | { readonly record: 'end'; readonly why: string | null };

export function fingerprint(text: string): Fingerprint {
  return { characters: text.length, sha256: createHash('sha256').update(text).digest('hex').slice(0, 16) };
}

export interface Journal {
  write(record: JournalRecord): void;
  close(): void;
}

/** Appends to a new file that only its owner reads. Throws CodedError `usage` where it can't be made or exists. */
export function openJournal(path: string): Journal {
  let file: number;
  try {
    file = openSync(path, 'wx', 0o600);
  } catch (thrown) {
    const why = (thrown as NodeJS.ErrnoException).code === 'EEXIST' ? 'one that is there' : 'one that can not be made';
    throw new CodedError('usage', `Expected a new file for the record of the run, got ${why}: ${shown(path)}`);
  }
  return {
    write: (record) => void writeSync(file, `${JSON.stringify(record)}\n`),
    close: () => closeSync(file),
  };
}

export function requestRecord(
  experiment: string,
  ask: Ask,
  answer: Answer,
  startMs: number,
  keepText: boolean,
): RequestRecord {
  return {
    record: 'request',
    experiment,
    id: answer.id,
    tenant: answer.tenant,
    sentMs: Math.round(answer.sentMs - startMs),
    endMs: Math.round(answer.endMs - startMs),
    prompt: fingerprint(ask.prompt),
    maxTokens: ask.maxTokens,
    stream: ask.stream,
    outcome: answer.outcome,
    status: answer.status,
    firstByteMs: answer.firstByteMs,
    firstTextMs: answer.firstTextMs,
    answer: fingerprint(answer.content),
    usage: answer.usage,
    finishReason: answer.finishReason,
    error: answer.error,
    ...(keepText ? { text: { prompt: ask.prompt, answer: answer.content } } : {}),
  };
}
