/** The one file of a run, from which every other format is made: one JSON record a line, written as things happen. */
import { createHash } from 'node:crypto';
import { closeSync, constants, ftruncateSync, openSync, writeSync } from 'node:fs';
import { assert } from '../base/assert.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import type { Answer } from './answer.js';
import type { Ask } from './client.js';
import type { ExperimentResult, Hit, Method, PlannedExperiment } from './result.js';

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
  /** Those of the experiments that the overall verdict is drawn from. */
  readonly required: readonly string[];
  /** The upper bound of the rate of hits above which an experiment has no power. */
  readonly bound: number;
}

/** What was learned before the first experiment. Tokens; null: not known. */
export interface KnowledgeRecord {
  readonly record: 'knowledge';
  readonly advertised: number | null;
  readonly advertisedFrom: string | null;
  readonly pool: number | null;
  readonly acceptLimit: number | null;
  readonly engine: string | null;
  readonly engineVersion: string | null;
  readonly nodes: readonly string[];
  /** Whether lengths can be told exactly, and whether streams come as streams. */
  readonly counts: boolean;
  readonly streams: boolean;
  /** Milliseconds of one small request. */
  readonly smallMs: number | null;
}

export interface PlanRecord {
  readonly record: 'plan';
  readonly experiments: readonly (PlannedExperiment & { readonly method: Method })[];
}

export interface EndRecord {
  readonly record: 'end';
  /** Why the run ended before its end; null: it did not. */
  readonly why: string | null;
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
  | KnowledgeRecord
  | PlanRecord
  | RequestRecord
  | ({ readonly record: 'hit' } & Hit)
  | ({ readonly record: 'experiment' } & ExperimentResult)
  | EndRecord;

export function fingerprint(text: string): Fingerprint {
  return { characters: text.length, sha256: createHash('sha256').update(text).digest('hex').slice(0, 16) };
}

export interface Journal {
  write(record: JournalRecord): void;
  close(): void;
}

/** A new file that only its owner reads. Throws CodedError `usage` where it can't be made or exists. */
export function openJournal(path: string): Journal {
  let file: number;
  try {
    file = openSync(path, 'wx', 0o600);
  } catch (thrown) {
    const why = (thrown as NodeJS.ErrnoException).code === 'EEXIST' ? 'one that is there' : 'one that can not be made';
    throw new CodedError('usage', `Expected a new file for the record of the run, got ${why}: ${shown(path)}`);
  }
  return journalOf(file);
}

/** Goes on behind the first `wholeBytes` bytes of an earlier record: a cut line is dropped. Throws CodedError `usage` where it can't be written. */
export function appendJournal(path: string, wholeBytes: number, endsInLine: boolean): Journal {
  let file: number;
  try {
    file = openSync(path, constants.O_WRONLY | constants.O_APPEND);
    ftruncateSync(file, wholeBytes);
  } catch {
    throw new CodedError('usage', `Expected a record of a run that can be written to, got ${shown(path)}`);
  }
  if (!endsInLine) writeSync(file, '\n');
  return journalOf(file);
}

function journalOf(file: number): Journal {
  let open = true;
  return {
    write: (record) => {
      // The number of a closed file may be that of another by now.
      assert(open, 'a record is written to before it is closed');
      writeSync(file, `${JSON.stringify(record)}\n`);
    },
    close: () => {
      open = false;
      closeSync(file);
    },
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
