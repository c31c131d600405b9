/**
 * A reporter for node's test runner: one JSON record a line, and a last line that says the run came to its end.
 * Loaded by the test process (`--test-reporter`), read by `tools/test-file.ts`.
 */
import { inspect } from 'node:util';

export type TestRecord =
  | {
      readonly kind: 'test';
      readonly name: string;
      readonly outcome: 'passed' | 'failed' | 'skipped';
      /** The whole failure, or the reason of a skip; empty otherwise. */
      readonly words: string;
    }
  | { readonly kind: 'end' };

/** The parts of node's events that are read here; their types say less than what comes. */
interface TestEvent {
  readonly type: string;
  readonly data?: {
    readonly name: string;
    readonly skip?: string | boolean;
    readonly todo?: string | boolean;
    readonly details?: { readonly type?: string; readonly error?: { readonly failureType?: string; cause?: unknown } };
  };
}

function reason(mark: string | boolean): string {
  return typeof mark === 'string' && mark !== '' ? mark : 'no reason given';
}

/** The record of an event, or null for what is no test: a suite counts only when it broke itself. */
export function recordOf(event: TestEvent): TestRecord | null {
  const data = event.data;
  if (data === undefined || (event.type !== 'test:pass' && event.type !== 'test:fail')) return null;
  const failed = event.type === 'test:fail';
  const error = data.details?.error;
  if (data.details?.type === 'suite' && (!failed || error?.failureType === 'subtestsFailed')) return null;
  const name = data.name;
  if (data.skip !== undefined && data.skip !== false) {
    return { kind: 'test', name, outcome: 'skipped', words: reason(data.skip) };
  }
  if (data.todo !== undefined && data.todo !== false) {
    return { kind: 'test', name, outcome: 'skipped', words: `to do: ${reason(data.todo)}` };
  }
  if (!failed) return { kind: 'test', name, outcome: 'passed', words: '' };
  const cause = error?.failureType === 'subtestsFailed' ? 'a test inside it failed' : (error?.cause ?? error);
  const words = typeof cause === 'string' ? cause : inspect(cause, { colors: false, depth: 6 });
  return { kind: 'test', name, outcome: 'failed', words };
}

export default async function* records(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of source) {
    const record = recordOf(event);
    if (record !== null) yield `${JSON.stringify(record)}\n`;
  }
  yield `${JSON.stringify({ kind: 'end' } satisfies TestRecord)}\n`;
}
