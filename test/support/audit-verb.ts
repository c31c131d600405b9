/** `cofferdam audit` in this process, for tests. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../../src/cli/program.js';
import type { Report } from '../../src/findings/report.js';

/** A file of the audit's fixtures. */
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../test/fixtures/audit/${name}`, import.meta.url));
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The verb with an io that remembers. */
export async function run(args: readonly string[], variables: Record<string, string> = {}): Promise<Ran> {
  let out = '';
  let err = '';
  const io = {
    out: (text: string): void => {
      out += text;
    },
    err: (text: string): void => {
      err += text;
    },
    variables,
    outIsTerminal: false,
  };
  const code = await runProgram(args, io, { faultNames: () => Promise.resolve([]) });
  return { code, out, err };
}

/** The report of `audit`, with the exit code. */
export async function report(
  args: readonly string[],
  variables: Record<string, string> = {},
): Promise<Report & { readonly code: number }> {
  const { code, out, err } = await run(['audit', ...args, '--output', 'json'], variables);
  assert.equal(err, '');
  return { ...(JSON.parse(out) as Report), code };
}

/** A test with a folder of its own. */
export function withFolder(body: (folder: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cofferdam-audit-'));
    try {
      await body(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}
