/** Checks over the source. Each is a pure function over files and gives its violations as sentences; none: an empty list. */
import type { ErrorRow } from '../src/base/errors.js';
import { functionsOf, importsOf, lineAt, maskText, resolveImport, type SourceFile } from './source.js';

/** What each part may import beside itself: the arrows of docs/ARCHITECTURE.md. Tests may import anything. */
export const ARROWS: Readonly<Record<string, readonly string[] | 'everything'>> = {
  base: [],
  findings: ['base'],
  wire: ['base'],
  tokenizer: ['base'],
  markers: ['base'],
  config: ['base'],
  handoff: ['base'],
  verify: ['handoff', 'base'],
  kv: ['handoff', 'base'],
  tensor: ['base'],
  model: ['tensor', 'kv', 'tokenizer', 'base'],
  engine: ['handoff', 'kv', 'model', 'tokenizer', 'wire', 'base'],
  upstream: ['handoff', 'wire', 'tokenizer', 'base'],
  gateway: ['handoff', 'upstream', 'tokenizer', 'markers', 'findings', 'wire', 'base'],
  sim: ['engine', 'gateway', 'model', 'kv', 'handoff', 'tokenizer', 'base'],
  replay: ['sim', 'engine', 'gateway', 'handoff', 'kv', 'markers', 'findings', 'base'],
  audit: ['upstream', 'findings', 'wire', 'base'],
  probe: ['upstream', 'markers', 'tokenizer', 'findings', 'wire', 'base'],
  exposure: ['findings', 'wire', 'base'],
  dashboard: ['findings', 'base'],
  cli: 'everything',
};

export function isTest(path: string): boolean {
  return path.includes('.test.') || path.startsWith('test/');
}

/** `src/kv/pool.ts` is of the part `kv`; null outside `src/`. */
export function partOf(path: string): string | null {
  return /^src\/([^/]+)\//.exec(path)?.[1] ?? null;
}

interface Edge {
  readonly from: string;
  readonly to: string;
  readonly line: number;
  readonly typeOnly: boolean;
}

export function edgesOf(files: readonly SourceFile[]): Edge[] {
  const edges: Edge[] = [];
  for (const file of files) {
    for (const { specifier, line, typeOnly } of importsOf(file)) {
      const to = resolveImport(file.path, specifier);
      if (to !== null) edges.push({ from: file.path, to, line, typeOnly });
    }
  }
  return edges;
}

export function wrongArrows(edges: readonly Edge[]): string[] {
  const wrong: string[] = [];
  for (const { from, to, line } of edges) {
    const part = partOf(from);
    if (part === null || isTest(from)) continue;
    const target = partOf(to);
    const allowed = ARROWS[part];
    if (allowed === undefined) wrong.push(`${from}: the part \`${part}\` has no row in the table of arrows`);
    else if (target === null) {
      if (/^(?:test|tools|bench)\//.test(to)) wrong.push(`${from}:${line}: shipped code may not import ${to}`);
    } else if (isTest(to)) wrong.push(`${from}:${line}: shipped code may not import the test ${to}`);
    else if (target !== part && allowed !== 'everything' && !allowed.includes(target)) {
      wrong.push(`${from}:${line}: \`${part}\` may not import \`${target}\` (${to}); it may: ${allowed.join(', ')}`);
    }
  }
  return wrong;
}

/** Cycles among files, types included: each as its path, from its first file back to it. */
export function cycles(edges: readonly Edge[]): string[] {
  const targets = new Map<string, string[]>();
  for (const { from, to } of edges) targets.set(from, [...(targets.get(from) ?? []), to]);
  const state = new Map<string, 'open' | 'done'>();
  const stack: string[] = [];
  const found: string[] = [];
  const visit = (path: string): void => {
    state.set(path, 'open');
    stack.push(path);
    for (const to of targets.get(path) ?? []) {
      if (state.get(to) === 'open') found.push([...stack.slice(stack.indexOf(to)), to].join(' -> '));
      else if (!state.has(to)) visit(to);
    }
    stack.pop();
    state.set(path, 'done');
  };
  for (const path of targets.keys()) if (!state.has(path)) visit(path);
  return found;
}

function isEntry(path: string): boolean {
  return (
    path === 'src/cli/main.ts' ||
    path === 'src/dashboard/client/main.ts' ||
    path === 'src/verify/page/client/main.ts' ||
    path.endsWith('-worker.ts') ||
    !path.startsWith('src/') ||
    isTest(path)
  );
}

/**
 * Files under `src/` that no other file imports. With `testsCount` false, a file that only tests import is named too.
 * `awaited` are let through; one that somebody imports by now is named, so that the list shrinks.
 */
export function unimported(
  files: readonly SourceFile[],
  edges: readonly Edge[],
  testsCount: boolean,
  awaited: readonly string[],
): string[] {
  const imported = new Set(edges.filter(({ from }) => testsCount || !isTest(from)).map(({ to }) => to));
  const wrong = awaited
    .filter((path) => imported.has(path))
    .map((path) => `${path}: is imported by now, take it off the list of awaited files`);
  for (const { path } of files) {
    if (isEntry(path) || path.includes('/assembly/') || imported.has(path) || awaited.includes(path)) continue;
    wrong.push(`${path}: nobody imports it`);
  }
  return wrong;
}

/** Imports that name no file. */
export function danglingImports(files: readonly SourceFile[], edges: readonly Edge[]): string[] {
  const known = new Set(files.map(({ path }) => path));
  return edges
    .filter(({ to }) => to.endsWith('.ts') && !known.has(to))
    .map(({ from, to, line }) => `${from}:${line}: ${to} does not exist`);
}

interface Ban {
  readonly pattern: RegExp;
  readonly call: string;
  readonly instead: string;
}

const bare = (name: string): RegExp =>
  new RegExp(`(?:(?<![\\w$.#'"])|\\bglobalThis\\.)${name.replace('.', '\\.')}\\b(?!\\s*:)`, 'g');
const CLOCK_BANS: readonly Ban[] = [
  { pattern: bare('Date.now'), call: 'Date.now', instead: '`clock.wallMs()`' },
  { pattern: bare('performance.now'), call: 'performance.now', instead: '`clock.nowMs()`' },
  { pattern: bare('process.hrtime'), call: 'process.hrtime', instead: '`clock.nowMs()`' },
  { pattern: bare('Math.random'), call: 'Math.random', instead: 'a `Prng` (or node:crypto for secrets)' },
  { pattern: bare('setTimeout'), call: 'setTimeout', instead: '`clock.after` or `sleep(clock, ms)`' },
  { pattern: bare('setInterval'), call: 'setInterval', instead: '`clock.after`, asked again after each run' },
  { pattern: bare('setImmediate'), call: 'setImmediate', instead: '`clock.soon`' },
];
const EXIT_BAN: Ban = {
  pattern: bare('process.exit'),
  call: 'process.exit',
  instead: '`process.exitCode`, or an error that reaches src/cli/main.ts',
};

export function bannedCalls(file: SourceFile): string[] {
  const bans: Ban[] = [];
  if (partOf(file.path) !== 'base') bans.push(...CLOCK_BANS);
  if (file.path !== 'src/cli/main.ts') bans.push(EXIT_BAN);
  const masked = maskText(file.text);
  const wrong: string[] = [];
  for (const { pattern, call, instead } of bans) {
    for (const { index } of masked.matchAll(pattern)) {
      wrong.push(`${file.path}:${lineAt(masked, index)}: \`${call}\` is banned here, use ${instead}`);
    }
  }
  if (partOf(file.path) !== 'base') {
    for (const { specifier, line } of importsOf(file)) {
      if (/^(?:node:)?timers(?:\/|$)/.test(specifier)) {
        wrong.push(
          `${file.path}:${line}: \`${specifier}\` is banned here, use \`clock.after\` or \`sleep(clock, ms)\``,
        );
      }
    }
  }
  return wrong;
}

const LEFTOVER_WORDS = /\b(?:FIX[M]E|X[X]X)\b/g;
const LEFTOVER_CODE: readonly { readonly pattern: RegExp; readonly words: string }[] = [
  {
    pattern: /\b(?:test|it|describe|suite|t)\.only\s*\(|\bonly:\s*true\b/g,
    words: 'a test run alone hides the others',
  },
  { pattern: /\b(?:test|it|describe|suite)\.skip\s*\(/g, words: "a skip carries its reason: `{ skip: 'why' }`" },
  { pattern: /\b(?:t|context)\.skip\s*\(\s*\)|\bskip:\s*true\b/g, words: "a skip carries its reason: `t.skip('why')`" },
];

export function leftovers(file: SourceFile): string[] {
  const wrong: string[] = [];
  for (const match of file.text.matchAll(LEFTOVER_WORDS)) {
    wrong.push(`${file.path}:${lineAt(file.text, match.index)}: a leftover \`${match[0]}\``);
  }
  const masked = maskText(file.text);
  for (const { pattern, words } of LEFTOVER_CODE) {
    for (const { index } of masked.matchAll(pattern)) {
      wrong.push(`${file.path}:${lineAt(masked, index)}: ${words}`);
    }
  }
  return wrong;
}

/** Lines. Just above these a thing is split, or listed with its reason. */
export const FUNCTION_LINES_MAX = 60;
export const FILE_LINES_MAX = 400;

export interface LengthException {
  readonly path: string;
  /** Null: the file itself. */
  readonly function: string | null;
  readonly reason: string;
}

/** Too long and not listed; listed and not too long. Functions of tests are free, their files are not. */
export function lengths(files: readonly SourceFile[], exceptions: readonly LengthException[]): string[] {
  const wrong: string[] = [];
  const used = new Set<LengthException>();
  const check = (path: string, name: string | null, lines: number, max: number, words: string): void => {
    if (lines <= max) return;
    const listed = exceptions.find((exception) => exception.path === path && exception.function === name);
    if (listed === undefined)
      wrong.push(`${words} has ${lines} lines, more than ${max}: split it, or list it with a reason`);
    else used.add(listed);
  };
  for (const file of files) {
    const lines = file.text.split('\n').length - (file.text.endsWith('\n') ? 1 : 0);
    check(file.path, null, lines, FILE_LINES_MAX, file.path);
    if (isTest(file.path)) continue;
    for (const found of functionsOf(file)) {
      check(file.path, found.name, found.lines, FUNCTION_LINES_MAX, `${file.path}:${found.line}: \`${found.name}\``);
    }
  }
  for (const exception of exceptions) {
    const name = exception.function === null ? exception.path : `${exception.path} \`${exception.function}\``;
    if (!used.has(exception)) wrong.push(`${name} is listed as too long, but is not: take it off the list`);
    if (exception.reason.length < 20) wrong.push(`${name} is listed without a reason`);
  }
  return wrong;
}

/** The table of `docs/ERRORS.md` (code, status, when, how to solve) against the table of `src/base/errors.ts`. */
export function errorDocs(markdown: string, table: Readonly<Record<string, ErrorRow>>): string[] {
  const wrong: string[] = [];
  const documented = new Set<string>();
  for (const line of markdown.split('\n')) {
    const code = /^\|\s*`([a-z_]+)`\s*\|/.exec(line)?.[1];
    if (code === undefined) continue;
    const cells = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    const row = Object.hasOwn(table, code) ? table[code] : undefined;
    const status = row?.status === 0 ? 'none' : String(row?.status);
    if (documented.has(code)) wrong.push(`docs/ERRORS.md: \`${code}\` stands twice`);
    documented.add(code);
    if (row === undefined) wrong.push(`docs/ERRORS.md: \`${code}\` is not in the table of src/base/errors.ts`);
    else if (cells[1] !== status)
      wrong.push(`docs/ERRORS.md: \`${code}\` has status ${cells[1]}, the table says ${status}`);
    if (cells.length !== 4 || cells.some((cell) => cell === '')) {
      wrong.push(`docs/ERRORS.md: the row of \`${code}\` needs code, status, when and how to solve`);
    }
  }
  for (const code of Object.keys(table)) {
    if (!documented.has(code)) wrong.push(`docs/ERRORS.md: \`${code}\` is not documented`);
  }
  return wrong;
}

/** Paths of the tree that a document names and that do not exist. */
export function missingPaths(document: SourceFile, exists: (path: string) => boolean): string[] {
  const wrong: string[] = [];
  for (const match of document.text.matchAll(/(?<![\w./-])(?:src|tools|test|bench|docs)\/[\w./-]*\w/g)) {
    if (!exists(match[0])) {
      wrong.push(`${document.path}:${lineAt(document.text, match.index)}: names ${match[0]}, which does not exist`);
    }
  }
  return wrong;
}
