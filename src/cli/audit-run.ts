import { readFileSync, statSync } from 'node:fs';
import { RULES } from '../audit/registry.js';
import { audit } from '../audit/run.js';
import { parseWaivers, WAIVERS_FILE, type WaiverRow } from '../audit/waivers.js';
import { SystemClock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { checkOutputs, convertReport, writeOutputs } from '../findings/outputs.js';
import type { RenderOptions } from '../findings/render.js';
import { exitCodeOfVerdict, judgeAgain, type Report } from '../findings/report.js';
import { parseReport, REPORT_CHARACTERS_MAX } from '../findings/report-parse.js';
import type { AuditVerbOptions } from './audit-options.js';
import type { CliIo } from './io.js';

/** Bytes of a file of waivers. */
const WAIVERS_BYTES_MAX = 1_048_576;

/** Audits and writes the report; resolves with the exit code. */
export async function runAudit(options: AuditVerbOptions, io: CliIo, version: string): Promise<number> {
  await checkOutputs(options.outputs);
  const report = await audit(
    { ...options, waivers: readWaivers(options.waivers), baseline: readBaseline(options.baseline) },
    { clock: new SystemClock(), version },
  );
  await writeOutputs(report, options.outputs, (text) => io.out(text), renderOptions(io));
  return exitCodeOfVerdict(report.verdict);
}

/** Renders a saved report again; judged by its own threshold, or by the one that is given now. */
export async function runConvert(options: AuditVerbOptions, file: string, io: CliIo): Promise<number> {
  await checkOutputs(options.outputs);
  const report = await convertReport(file, options.outputs, (text) => io.out(text), renderOptions(io));
  const judged = options.judged ? judgeAgain(report, options.failOn, options.required) : report;
  return exitCodeOfVerdict(judged.verdict);
}

function renderOptions(io: CliIo): RenderOptions {
  const colour = io.outIsTerminal && io.variables.NO_COLOR === undefined;
  const columns = Number(io.variables.COLUMNS ?? Number.NaN);
  return { colour, rules: RULES.map(({ meta }) => meta), ...(columns >= 40 ? { width: Math.min(columns, 400) } : {}) };
}

/** A file that is named must be there; the usual one may be. */
function readWaivers(file: string | null): WaiverRow[] {
  const path = file ?? WAIVERS_FILE;
  if (file === null && statSync(path, { throwIfNoEntry: false }) === undefined) return [];
  return parseWaivers(readBounded(path, '--waivers', WAIVERS_BYTES_MAX));
}

function readBaseline(file: string | null): Report | null {
  return file === null ? null : parseReport(readBounded(file, '--baseline', REPORT_CHARACTERS_MAX));
}

function readBounded(path: string, flag: string, bytesMax: number): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isFile() || stat.size > bytesMax) {
    throw new CodedError(
      'usage',
      `Expected \`${flag}\` to name a file of at most ${bytesMax} bytes, got ${shown(path)}`,
    );
  }
  return readFileSync(path, 'utf8');
}
