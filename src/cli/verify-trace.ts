/** `cofferdam verify --trace FILE`: reads the trace line by line and holds it against the protocol. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { CodedError } from '../base/errors.js';
import { escapeControl, shown } from '../base/text.js';
import { TraceReader } from '../handoff/trace.js';
import { Conformance } from '../verify/conform.js';
import { type CliIo, EXIT } from './io.js';

/** Resolves with the exit code: 0 it conforms, 1 it does not, 3 it is cut or holds no step. A line of another kind or version is wrong usage. */
export async function runVerifyTrace(path: string, asJson: boolean, io: CliIo): Promise<number> {
  const reader = new TraceReader();
  const conformance = new Conformance();
  let before: string | null = null;
  for await (const line of linesOf(path)) {
    if (before !== null) take(reader, conformance, before);
    // What comes after the first record that nothing explains explains nothing more.
    if (conformance.deviation !== null) break;
    before = line;
  }
  const isTorn = conformance.explained > 0 && before !== null && !isJson(before);
  if (before !== null && !isTorn && conformance.deviation === null) take(reader, conformance, before);
  // What waits in a trace that is cut may be allowed by what is missing.
  if (reader.isWhole) conformance.finish();
  const { deviation, explained } = conformance;
  const isJudged = reader.isWhole && explained > 0;
  const verdict = deviation !== null ? 'violated' : isJudged ? 'holds' : 'incomplete';
  if (asJson) io.out(`${JSON.stringify({ trace: path, verdict, explained, deviation })}\n`);
  else if (deviation !== null) {
    const words = escapeControl(deviation.words);
    io.out(`violated: no allowed order explains record ${deviation.record}: ${words}\n`);
    io.out(`${explained} steps before it conform.\n`);
  } else {
    const cut = reader.isWhole ? ': no step was taken in it' : ': the trace is cut, its last line is missing';
    io.out(`${verdict}${isJudged ? '' : cut}; ${explained} steps conform.\n`);
  }
  return deviation !== null ? EXIT.findings : isJudged ? EXIT.clean : EXIT.unchecked;
}

function take(reader: TraceReader, conformance: Conformance, line: string): void {
  const record = reader.take(line);
  if (record !== null) conformance.take(record);
}

/** False: the line in which the writer was killed. */
function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

async function* linesOf(path: string): AsyncGenerator<string> {
  const input = createReadStream(path, 'utf8');
  try {
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    if (error instanceof CodedError || !(error instanceof Error && 'code' in error)) throw error;
    const got = `${shown(path)} (${String(error.code)})`;
    throw new CodedError('usage', `Expected \`--trace\` to be a file that can be read, got ${got}`);
  } finally {
    input.destroy();
  }
}
