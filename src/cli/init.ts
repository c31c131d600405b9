/** `cofferdam init`: an example of the configuration that is itself one. */
import { randomBytes } from 'node:crypto';
import { linkSync, lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { exampleOf } from '../config/example.js';
import { CONFIG_FILE, SERVE_SHAPE } from './config-shape.js';
import type { InitFlags } from './flags.js';
import { type CliIo, EXIT } from './io.js';

const SCHEMA_PATH = fileURLToPath(new URL('../../../docs/cofferdam.schema.json', import.meta.url));

/** The example, with the line by which an editor finds the schema. `schema` is a path as seen from the file. */
export function exampleText(schema: string): string {
  return exampleOf(SERVE_SHAPE, [
    `yaml-language-server: $schema=${schema}`,
    '',
    'What `cofferdam serve` is told. It reads this file where it is started, or `cofferdam serve --config FILE`; flags override it.',
    'Every value below is the default. `kill -HUP` or saving the file applies what can change while it runs; what needs a restart is',
    'said, and then nothing is applied. docs/CONFIGURATION.md has it all in one table.',
    'Counts of tokens and bytes may have a suffix (`8k` is 8192), times have a unit (`500ms`, `30s`, `5m`, `1h`).',
    'A key never stands here: `env:NAME` is a variable, `file:PATH` a file with one line, `sha256:HEX64` the digest of a key.',
  ]);
}

/** Writes it whole or not at all, over nothing that was there unless asked to. Throws CodedError `usage`. */
export function init(flags: InitFlags, io: CliIo): number {
  const output = flags.output ?? CONFIG_FILE;
  const schema = relative(dirname(resolve(output)), SCHEMA_PATH)
    .split(sep)
    .join('/');
  writeNew(output, exampleText(schema.startsWith('.') ? schema : `./${schema}`), flags.force === true);
  const config = output === CONFIG_FILE ? '' : ` --config ${output}`;
  io.out(`${output} is written. \`cofferdam serve${config}\` starts with it.\n`);
  return EXIT.clean;
}

function writeNew(output: string, text: string, force: boolean): void {
  const temporary = `${output}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    if (lstatSync(output, { throwIfNoEntry: false })?.isDirectory() === true) throw notAFile(output, 'a folder');
    writeFileSync(temporary, text, { flag: 'wx', mode: 0o644 });
    // A link is made only where nothing is: no file that came in between is lost.
    if (force) renameSync(temporary, output);
    else linkSync(temporary, output);
  } catch (thrown) {
    if (thrown instanceof CodedError) throw thrown;
    const code = (thrown as NodeJS.ErrnoException).code;
    if (code === undefined) throw thrown;
    if (code !== 'EEXIST') throw notAFile(output, `the error ${code}`);
    const change = 'Name another one with `--output`, or replace it with `--force`.';
    throw new CodedError('usage', `Expected ${shown(output)} not to be there yet, got a file. ${change}`);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function notAFile(output: string, came: string): CodedError {
  const change = 'Name a file in a folder that can be written, with `--output`.';
  return new CodedError('usage', `Expected ${shown(output)} to be a file that can be written, got ${came}. ${change}`);
}
