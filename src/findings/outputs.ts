/** `--output FORMAT[=FILE]`: from flags to targets, and from a report to files. */
import { randomBytes } from 'node:crypto';
import { access, constants, open, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { OUTPUT_FORMATS, type OutputFormat, type RenderOptions, renderReport } from './render.js';
import { makeReport, type Report } from './report.js';
import { parseReport, REPORT_CHARACTERS_MAX } from './report-parse.js';

/** Outputs of one run: each format to a few places. */
export const OUTPUTS_MAX = 16;

export interface OutputTarget {
  readonly format: OutputFormat;
  /** Null: standard output. */
  readonly file: string | null;
}

const usage = (message: string, cause?: unknown): CodedError => new CodedError('usage', message, { cause });

/** Each text is the value of one `--output`; none: a table on standard output. Throws CodedError `usage`. */
export function parseOutputs(texts: readonly string[]): OutputTarget[] {
  if (texts.length === 0) return [{ format: 'table', file: null }];
  if (texts.length > OUTPUTS_MAX)
    throw usage(`Expected at most ${OUTPUTS_MAX} times \`--output\`, got \`${texts.length}\``);
  const targets: OutputTarget[] = [];
  for (const text of texts) {
    const target = parseOutput(text);
    const same = targets.some(({ file }) => (file === null ? target.file === null : isSameFile(file, target.file)));
    if (same && target.file === null) {
      throw usage(`Expected at most one \`--output\` without \`=FILE\`, got a second: ${shown(text)}`);
    }
    if (same) throw usage(`Expected each \`--output\` to name a file of its own, got ${shown(target.file)} twice`);
    targets.push(target);
  }
  return targets;
}

const isSameFile = (a: string, b: string | null): boolean => b !== null && resolve(a) === resolve(b);

/** `html=report.html`; `json` and `json=-` are standard output. */
function parseOutput(text: string): OutputTarget {
  const at = text.indexOf('=');
  const name = at < 0 ? text : text.slice(0, at);
  const format = OUTPUT_FORMATS.find((known) => known === name);
  if (format === undefined) {
    throw usage(
      `Expected \`--output\` to be one of ${OUTPUT_FORMATS.join(', ')}, with \`=FILE\` or not, got ${shown(name)}`,
    );
  }
  if (at < 0) return { format, file: null };
  const file = text.slice(at + 1);
  if (file === '' || file.includes('\0')) {
    throw usage(`Expected a file after \`--output ${format}=\`, got ${shown(file)}`);
  }
  return { format, file: file === '-' ? null : file };
}

/** Before any work: a run of ten minutes does not end with a folder that is not there. Throws CodedError `usage`. */
export async function checkOutputs(targets: readonly OutputTarget[]): Promise<void> {
  for (const { format, file } of targets) {
    if (file === null) continue;
    try {
      const kind = await kindOf(file);
      if (kind === 'folder') throw new Error('it is a folder');
      await access(kind === 'none' || kind === 'file' ? dirname(await target(file)) : file, constants.W_OK);
    } catch (error) {
      throw unwritable(format, file, error);
    }
  }
}

/** Renders the report once per target; files are written whole or not at all. `out` takes what goes to standard output. */
export function writeOutputs(
  report: Report,
  targets: readonly OutputTarget[],
  out: (text: string) => void,
  options: RenderOptions = {},
): Promise<void> {
  // A file gets no colours and no terminal's width.
  const plain: RenderOptions = options.rules === undefined ? {} : { rules: options.rules };
  return writeRendered(targets, out, (format, toFile) => renderReport(report, format, toFile ? plain : options));
}

/** The same for a verb with renderers of its own: `render` is asked for the text of each target. */
export async function writeRendered(
  targets: readonly OutputTarget[],
  out: (text: string) => void,
  render: (format: OutputFormat, toFile: boolean) => string,
): Promise<void> {
  for (const { format, file } of targets) {
    const text = render(format, file !== null);
    if (file === null) {
      out(text);
      continue;
    }
    try {
      await writeWhole(file, text);
    } catch (error) {
      throw unwritable(format, file, error);
    }
  }
}

/**
 * `--convert FILE`: a saved report in other formats. The verdict is drawn again from what stands in the file, so that an
 * edited one does not look better than it is. Returns the report, for the exit code. Throws CodedError `usage`.
 */
export async function convertReport(
  file: string,
  targets: readonly OutputTarget[],
  out: (text: string) => void,
  options: RenderOptions = {},
): Promise<Report> {
  const report = makeReport(parseReport(await readReport(file)));
  await writeOutputs(report, targets, out, options);
  return report;
}

async function readReport(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size <= REPORT_CHARACTERS_MAX) return await readFile(file, 'utf8');
  } catch (error) {
    throw usage(
      `Expected \`--convert\` to name a report that can be read, got ${shown(file)} (${reason(error)})`,
      error,
    );
  }
  throw usage(
    `Expected \`--convert\` to name a report of at most ${REPORT_CHARACTERS_MAX} bytes, got ${shown(file)}, which is larger`,
  );
}

/** A device or a pipe is written to as it is: renaming a file over `/dev/null` would replace it for everybody. */
async function writeWhole(file: string, text: string): Promise<void> {
  const kind = await kindOf(file);
  if (kind === 'folder') throw new Error('it is a folder');
  if (kind === 'other') {
    await writeFile(file, text);
    return;
  }
  const path = await target(file);
  const temporary = join(dirname(path), `.${basename(path).slice(0, 100)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    const handle = await open(temporary, 'wx');
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function kindOf(file: string): Promise<'none' | 'file' | 'folder' | 'other'> {
  try {
    const found = await stat(file);
    return found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other';
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'none';
    throw error;
  }
}

/** Where a link leads, so that the link stays; the path itself for a new file. */
async function target(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    return resolve(file);
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function reason(error: unknown): string {
  const code = codeOf(error);
  return typeof code === 'string' ? code : error instanceof Error ? error.message : 'unknown';
}

function unwritable(format: OutputFormat, file: string, error: unknown): CodedError {
  return usage(
    `Expected \`--output ${format}=…\` to name a file that can be written, got ${shown(file)} (${reason(error)})`,
    error,
  );
}
