/**
 * Mutation of the protocol's own decisions: each condition of the machines in src/handoff/ turned round, each early return and each
 * event left out, each move to another phase and each message dropped. Every mutant is made in a copy of the compiled code in a
 * temporary folder, and judged by the checker (the worlds of `small` and others without a fault; where a guard's own line is changed,
 * the faults that it stops with all of their other guards off), and, if that holds, by the unit tests of the machines.
 *
 *   npm run test:mutation                all of them; the last line is the score
 *   npm run test:mutation -- decode.js   those of one file
 *
 * Exit code 1: a mutant survived that `tools/mutants-equivalent.ts` doesn't explain, or one that it explains is caught or gone.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CATALOGUE, FAULTS, faultBits, guardsAgainst } from '../src/handoff/faults.js';
import { ALL_GUARDS, guardBit, isGuardName } from '../src/handoff/guards.js';
import { brokenJobs, modelOf, soundJobs } from '../src/verify/campaign.js';
import { explore } from '../src/verify/explore.js';
import { scopeOf, scopeOfFault } from '../src/verify/scopes.js';
import { EQUIVALENT } from './mutants-equivalent.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HANDOFF = 'dist/src/handoff';
const FILES = ['gateway.js', 'prefill.js', 'decode.js', 'decode-pages.js', 'prefix.js', 'rules.js'] as const;
const TESTS = ['gateway', 'prefill', 'decode', 'ledger', 'faults', 'invariants'];
const JUDGE_TIMEOUT_MS = 120_000;
/** A mutant whose world has no end is no protocol either; the largest world here has 272,477 states. */
const STATES_MAX = 3_000_000;

interface Mutant {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  /** The function, what was done, and the line: the same for as long as the code is the same. */
  readonly name: string;
  /** The guard whose line this is, or the empty text. */
  readonly guard: string;
}

/** Each way to change one line that decides something: what it is called, and the line afterwards; null: not that kind of line. */
const OPERATORS: readonly { readonly name: string; readonly apply: (line: string) => string | null }[] = [
  {
    name: 'negated',
    apply: (line) => {
      const found = /^(\s*(?:else )?if )\((.*)\)(| \{| return.*;)$/.exec(line);
      return found === null ? null : `${found[1]}(!(${found[2]}))${found[3]}`;
    },
  },
  {
    name: 'never',
    apply: (line) => {
      const found = /^(\s*(?:else )?if )\((.*)\)(| \{| return.*;)$/.exec(line);
      return found === null ? null : `${found[1]}(false)${found[3]}`;
    },
  },
  {
    name: 'event unheard',
    apply: (line) => (/^\s*case EventKind\.\w+:$/.test(line) ? line.replace(/EventKind\.(\w+)/, "'no $1'") : null),
  },
  { name: 'phase kept', apply: (line) => (/^\s*enter\(view, .*\);$/.test(line) ? '' : null) },
  {
    name: 'message dropped',
    apply: (line) => {
      const found = /^(\s*(?:return )?)(send\w*|answer|askToClose|guardHit)\(.*\);$/.exec(line);
      return found === null ? null : `${found[1]};`;
    },
  },
  {
    name: 'cell kept',
    apply: (line) => (/^\s*(view\.)?cells\[.*\](\+\+|--| [+-]?= .*);$/.test(line) ? '' : null),
  },
  {
    name: 'pages kept',
    apply: (line) => (/^\s*(release|releaseSource|dropPrefix|freePage|drainPages)\(.*\);$/.test(line) ? '' : null),
  },
];

/** Every mutant of one compiled file, in the order of its lines. */
function mutantsOf(file: string, code: string): Mutant[] {
  const mutants: Mutant[] = [];
  const seen = new Map<string, number>();
  let inside = '';
  for (const [line, text] of code.split('\n').entries()) {
    inside = /^(?:export )?function (\w+)/.exec(text)?.[1] ?? inside;
    for (const { name, apply } of OPERATORS) {
      const changed = apply(text);
      if (changed === null) continue;
      const plain = `${file} ${inside}: ${name}: ${text.trim()}`;
      const times = (seen.get(plain) ?? 0) + 1;
      seen.set(plain, times);
      const guard = /GUARD\.(\w+)/.exec(text)?.[1] ?? '';
      mutants.push({ file, line, text: changed, name: times === 1 ? plain : `${plain} (${times})`, guard });
    }
  }
  return mutants;
}

/** In the mutated copy: the first thing that the checker finds, or null. */
function checkerFinds(guard: string): string | null {
  const jobs = [
    ...soundJobs(scopeOf('small')),
    ...soundJobs(scopeOf('oversized')),
    ...soundJobs(scopeOf('alone')).map((job) => ({ ...job, coverage: false })),
    ...soundJobs(scopeOf('restarts')),
    ...soundJobs(scopeOf('handles')).map((job) => ({ ...job, coverage: false })),
  ];
  if (isGuardName(guard)) {
    for (const fault of FAULTS) {
      if (!CATALOGUE[fault].guards.includes(guard)) continue;
      const guards = (ALL_GUARDS & ~guardsAgainst([fault])) | guardBit(guard);
      // The guard alone: without it the fault does harm, with it none.
      jobs.push(...brokenJobs(scopeOf(scopeOfFault(fault)), { faults: faultBits([fault]), guards }));
    }
  }
  for (const job of jobs) {
    const found = explore(modelOf(job), { coverage: job.coverage, statesMax: STATES_MAX });
    if (found.verdict === 'holds') continue;
    return `${found.violation?.invariant ?? found.reasons[0] ?? found.verdict} (${job.title})`;
  }
  return null;
}

/** The machine whose code is judged is the one beside this file; one line says what was found. */
function judge(guard: string): void {
  let found: string | null;
  try {
    found = checkerFinds(guard);
  } catch (thrown) {
    found = `it throws: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  }
  process.stdout.write(`${found ?? 'holds'}\n`);
}

function testsFind(folder: string): string | null {
  const files = TESTS.map((name) => `${HANDOFF}/${name}.test.js`);
  const { NODE_TEST_CONTEXT: _nested, ...env } = process.env;
  const ran = spawnSync(process.execPath, ['--test', '--test-reporter=tap', ...files], {
    cwd: folder,
    env,
    encoding: 'utf8',
    timeout: JUDGE_TIMEOUT_MS,
  });
  if (ran.status === 0) return null;
  return /^\s*not ok \d+ - (?!.*\.test\.js)(.*)$/m.exec(ran.stdout)?.[1] ?? 'a test that does not end';
}

/** A copy of what is needed to judge, in a folder of its own. */
function copyOfCode(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-mutants-'));
  for (const part of ['base', 'handoff', 'verify']) {
    cpSync(join(ROOT, 'dist/src', part), join(folder, 'dist/src', part), { recursive: true });
  }
  mkdirSync(join(folder, 'dist/tools'));
  for (const name of ['mutate-protocol.js', 'mutants-equivalent.js']) {
    cpSync(join(ROOT, 'dist/tools', name), join(folder, 'dist/tools', name));
  }
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  cpSync(join(ROOT, 'docs'), join(folder, 'docs'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** Who caught the mutant and with what; null: nobody did. */
function fateOf(folder: string, mutant: Mutant, code: string): string | null {
  const at = join(folder, HANDOFF, mutant.file);
  const lines = code.split('\n');
  lines[mutant.line] = mutant.text;
  writeFileSync(at, lines.join('\n'));
  try {
    const ran = spawnSync(process.execPath, [join(folder, 'dist/tools/mutate-protocol.js'), '--judge', mutant.guard], {
      encoding: 'utf8',
      timeout: JUDGE_TIMEOUT_MS,
    });
    const said = ran.stdout.trim();
    if (said !== 'holds') return `verify: ${said === '' ? `ended with ${ran.status ?? ran.signal}` : said}`;
    const test = testsFind(folder);
    return test === null ? null : `test: ${test}`;
  } finally {
    writeFileSync(at, code);
  }
}

function main(only: string | undefined): void {
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  const folder = copyOfCode();
  const counts = { made: 0, byVerify: 0, byTest: 0, equivalent: 0, wrong: 0 };
  const unused = new Map(EQUIVALENT.map((entry) => [entry.mutant, entry]));
  try {
    for (const file of FILES) {
      if (only !== undefined && only !== file) continue;
      const code = readFileSync(join(folder, HANDOFF, file), 'utf8');
      for (const mutant of mutantsOf(file, code)) {
        counts.made++;
        const fate = fateOf(folder, mutant, code);
        const known = unused.get(mutant.name);
        unused.delete(mutant.name);
        if (fate === null && known !== undefined) counts.equivalent++;
        else if (fate === null || known !== undefined) counts.wrong++;
        if (fate?.startsWith('verify') === true) counts.byVerify++;
        else if (fate !== null) counts.byTest++;
        const verdict = fate === null ? (known === undefined ? 'SURVIVED' : 'same    ') : 'caught  ';
        const note = known !== undefined && fate !== null ? '; LISTED as equivalent, and is not' : '';
        say(`${verdict} ${mutant.name}\n         ${fate ?? known?.reason ?? 'nobody caught it'}${note}`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  if (only === undefined) {
    for (const name of unused.keys()) {
      counts.wrong++;
      say(`GONE     ${name}\n         is listed as equivalent and no such mutant is made`);
    }
  }
  const { made, byVerify, byTest, equivalent, wrong } = counts;
  if (wrong > 0) process.exitCode = 1;
  const caught = byVerify + byTest;
  const score = (100 * caught) / Math.max(made - equivalent, 1);
  say(
    `${made} mutants: ${caught} caught (${byVerify} by verify, ${byTest} by unit tests alone), ${equivalent} equivalent, ${wrong} unexplained; score ${score.toFixed(1)} %`,
  );
}

if (process.argv[2] === '--judge') judge(process.argv[3] ?? '');
else main(process.argv[2]);
