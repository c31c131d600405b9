/** Where engines are installed and models written: a folder that outlives a run, outside the repository. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CouldNotRun } from './could-not-run.js';

export const ROOT: string = fileURLToPath(new URL('../../..', import.meta.url));
export const MAIN: string = join(ROOT, 'dist', 'src', 'cli', 'main.js');
/** Python files of ours that engines load. */
export const PYTHON_FOLDER: string = join(ROOT, 'test', 'engines', 'python');
const PYTHON_VERSION = '3.11';
/** Written last, with the recipe in it: an environment without it was not finished. */
const DONE = 'cofferdam-recipe.json';
const TAIL_CHARACTERS = 600;

/** Packages of one virtual environment. */
export interface Recipe {
  /** Name of the environment's folder. */
  readonly name: string;
  readonly packages: readonly string[];
  /** uv's overrides: versions that replace what packages ask for. */
  readonly overrides: readonly string[];
  /** Shared libraries that the system must have, and the Debian packages that bring them. */
  readonly libraries?: Readonly<Record<string, string>>;
  /** Environment of the installation: what a package that is compiled is told. */
  readonly variables?: Readonly<Record<string, string>>;
}

export interface Folder {
  readonly path: string;
  /** Paths in it. */
  at(...names: string[]): string;
  /** A folder for what the processes of a run print. */
  logs(run: string): string;
  /** The environment of a recipe, made where it is not there yet. Throws `CouldNotRun`. */
  environment(recipe: Recipe, say: (text: string) => void): Promise<string>;
  /** The lab model for a context of so many tokens: a folder (`hf`) or a file (`gguf`). */
  model(format: 'hf' | 'gguf', contextTokens: number): string;
}

/** `$COFFERDAM_ENGINES`, else a folder of the user's cache. */
export function defaultFolder(variables: Readonly<Record<string, string | undefined>> = process.env): string {
  const cache = variables.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  return variables.COFFERDAM_ENGINES ?? join(cache, 'cofferdam-engines');
}

export function openFolder(path: string): Folder {
  mkdirSync(join(path, 'logs'), { recursive: true });
  const at = (...names: string[]): string => join(path, ...names);
  return {
    path,
    at,
    logs: (run) => {
      mkdirSync(at('logs', run), { recursive: true });
      return at('logs', run);
    },
    environment: (recipe, say) => makeEnvironment(at, recipe, say),
    model: (format, contextTokens) => exportModel(at, format, contextTokens),
  };
}

type At = (...names: string[]) => string;

async function makeEnvironment(at: At, recipe: Recipe, say: (text: string) => void): Promise<string> {
  checkLibraries(recipe);
  const folder = at(recipe.name);
  const done = join(folder, DONE);
  const wanted = JSON.stringify({ packages: recipe.packages, overrides: recipe.overrides });
  if (existsSync(done) && readFileSync(done, 'utf8') === wanted) return folder;
  const uv = await makeUv(at, say);
  say(`installing ${recipe.packages.join(' ')} into ${folder}`);
  rmSync(folder, { recursive: true, force: true });
  const log = at('logs', `install-${recipe.name}.log`);
  const python = ['--python', PYTHON_VERSION, '--python-preference', 'only-system'];
  await run(log, uv, ['venv', '--quiet', ...python, folder]);
  const overrides = join(folder, 'overrides.txt');
  writeFileSync(overrides, `${recipe.overrides.join('\n')}\n`);
  const install = ['pip', 'install', '--quiet', '--override', overrides, ...recipe.packages];
  await run(log, uv, install, { ...recipe.variables, VIRTUAL_ENV: folder });
  writeFileSync(done, wanted);
  return folder;
}

/** uv in an environment of its own: it takes overrides, and a 6 GB environment takes it seconds. */
async function makeUv(at: At, say: (text: string) => void): Promise<string> {
  const uv = at('tool', 'bin', 'uv');
  if (existsSync(uv)) return uv;
  say(`installing uv into ${at('tool')}`);
  const log = at('logs', 'install-uv.log');
  await run(log, 'python3', ['-m', 'venv', at('tool')]);
  await run(log, at('tool', 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', 'uv']);
  return uv;
}

function checkLibraries({ name, libraries = {} }: Recipe): void {
  const listed = spawnSync('/sbin/ldconfig', ['-p'], { encoding: 'utf8' });
  // Where there is no such command, the engine says at its start what it misses.
  if (listed.error !== undefined) return;
  const missing = Object.keys(libraries).filter((library) => !listed.stdout.includes(library));
  if (missing.length === 0) return;
  const packages = missing.map((library) => libraries[library]).join(' ');
  throw new CouldNotRun(`${name} needs ${missing.join(', ')}: install the Debian packages ${packages}`);
}

/** Runs to its end, output into `log`. Throws `CouldNotRun` with the log's end. */
function run(log: string, command: string, args: readonly string[], variables: NodeJS.ProcessEnv = {}): Promise<void> {
  const out = openSync(log, 'a');
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      const tail = readFileSync(log, 'utf8').trim().slice(-TAIL_CHARACTERS);
      reject(new CouldNotRun(`${command} ${args[0] ?? ''} ${args[1] ?? ''}: ${why}. ${tail}`));
    };
    const child = spawn('nice', [command, ...args], {
      stdio: ['ignore', out, out],
      env: { ...process.env, PIP_DISABLE_PIP_VERSION_CHECK: '1', ...variables },
    });
    child.on('error', ({ message }) => fail(message));
    child.on('exit', (code, signal) => (code === 0 ? resolve() : fail(`ended with ${code ?? signal}`)));
  });
}

function exportModel(at: At, format: 'hf' | 'gguf', contextTokens: number): string {
  const path = at(format === 'gguf' ? `lab-${contextTokens}.gguf` : `lab-${contextTokens}`);
  if (existsSync(path)) return path;
  const args = [MAIN, 'lab', '--format', format, '--context', String(contextTokens), path];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new CouldNotRun(`the lab model could not be written: ${stderr.trim()}`);
  return path;
}
