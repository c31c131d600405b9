/** The reports of a run, made of its record. */
import { checkOutputs, type OutputTarget, writeRendered } from '../findings/outputs.js';
import { type OutputFormat, type RenderOptions, renderReport } from '../findings/render.js';
import { readRun } from '../probe/convert.js';
import { probePage } from '../probe/page.js';
import type { RunRecord } from '../probe/record.js';
import { probeJson, probeReport } from '../probe/report.js';
import { PROBE_RULES } from '../probe/rule-texts.js';
import { probeTable } from '../probe/table.js';
import { exitCodeOfProbe } from '../probe/verdict.js';
import type { CliIo } from './io.js';

/** `--convert FILE`; resolves with the exit code of the run in it. */
export async function convertProbe(file: string, outputs: readonly OutputTarget[], io: CliIo): Promise<number> {
  await checkOutputs(outputs);
  const { record, notes } = readRun(file, '--convert');
  for (const note of notes) io.err(`note: ${note}\n`);
  await writeProbeReports(record, outputs, io);
  return exitCodeOfProbe(record.verdict);
}

export function writeProbeReports(record: RunRecord, outputs: readonly OutputTarget[], io: CliIo): Promise<void> {
  const columns = Number(io.variables.COLUMNS ?? Number.NaN);
  const terminal: RenderOptions = {
    colour: io.outIsTerminal && io.variables.NO_COLOR === undefined,
    rules: PROBE_RULES,
    ...(columns >= 40 ? { width: Math.min(columns, 400) } : {}),
  };
  return writeRendered(
    outputs,
    (text) => io.out(text),
    (format, toFile) => render(record, format, toFile ? { rules: PROBE_RULES } : terminal),
  );
}

function render(record: RunRecord, format: OutputFormat, options: RenderOptions): string {
  switch (format) {
    case 'table':
      return probeTable(record, options);
    case 'json':
      return probeJson(record);
    case 'html':
      return probePage(record);
    default:
      return renderReport(probeReport(record), format, options);
  }
}
