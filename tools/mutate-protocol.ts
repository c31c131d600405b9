/**
 * Mutation of the protocol's own decisions: each condition of the machines in src/handoff/ turned round, each early return and each
 * event left out, each move to another phase and each message dropped. Every mutant is made in a copy of the compiled code in a
 * temporary folder, and judged by what is quick first: the unit tests of its machine, then the checker's first states (the worlds of
 * `small` and others without a fault; where a guard's own line is changed, the faults that it stops with all of their other guards
 * off), then the other machines' unit tests, then the same worlds whole. Two mutants are judged at a time.
 *
 *   npm run test:mutation                all of them; the last line is the score
 *   npm run test:mutation -- decode.js   those of one file
 *   npm run test:mutation -- decode.js onDrained   those of one function
 *   npm run test:mutation -- --verify-first ...    whole worlds first: what the checker catches without a unit test; takes longer
 *
 * Exit code 1: a mutant survived that `tools/mutants-equivalent.ts` doesn't explain, or one that it explains is caught or gone.
 */
import { spawn } from 'node:child_process';
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
const FILES = ['decode.js', 'prefill.js', 'decode-pages.js', 'prefix.js', 'rules.js', 'gateway.js'] as const;
type MutatedFile = (typeof FILES)[number];
/** The unit tests of the machines, the quick ones first. */
const TESTS = ['gateway', 'prefill', 'decode', 'ledger', 'faults', 'invariants'];
/** Those of the machine that a file belongs to. */
const OWN_TESTS: Readonly<Record<MutatedFile, readonly string[]>> = {
  'decode.js': ['decode'],
  'prefill.js': ['prefill'],
  'decode-pages.js': ['decode'],
  'prefix.js': ['decode', 'prefill'],
  'rules.js': ['decode', 'prefill', 'gateway'],
  'gateway.js': ['gateway'],
};
const JUDGE_TIMEOUT_MS = 120_000;
/** Copies of the code, and so mutants judged at a time. */
const LANES = 2;
/** Of each world in the first look: most mutants break an invariant within these. */
const FIRST_LOOK_STATES = 10_000;
/** A mutant whose world has no end is no protocol either; the largest world here has 272,477 states. */
const STATES_MAX = 3_000_000;

interface Mutant {
  readonly file: MutatedFile;
  readonly line: number;
  readonly text: string;
  /** The function, what was done, and the line: the same for as long as the code is the same. */
  readonly name: string;
  /** The guard whose line this is, or the empty text. */
  readonly guard: string;
}

/** A whole comparison that is given a name or returned. */
const COMPARE = /^(\s*(?:return |const (?:is|again)\w* = ))((?!\w+\(.*\);$).*(?:[!=]==|<=|>=|&&).*);$/;

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
    name: 'compare negated',
    apply: (line) => {
      const found = COMPARE.exec(line);
      return found === null ? null : `${found[1]}!(${found[2]});`;
    },
  },
  {
    name: 'compare skipped',
    apply: (line) => {
      const found = COMPARE.exec(line);
      return found === null ? null : `${found[1]}true;`;
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
function mutantsOf(file: MutatedFile, code: string): Mutant[] {
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

/** In the mutated copy: the first thing that the checker finds, or null. A first look counts only what is violated. */
function checkerFinds(guard: string, isFirstLook: boolean): string | null {
  const jobs = [
    ...soundJobs(scopeOf('small')),
    ...soundJobs(scopeOf('oversized')),
    ...soundJobs(scopeOf('alone')).map((job) => ({ ...job, coverage: false })),
    ...soundJobs(scopeOf('restarts')),
    ...soundJobs(scopeOf('retries')).map((job) => ({ ...job, coverage: false })),
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
  const statesMax = isFirstLook ? FIRST_LOOK_STATES : STATES_MAX;
  for (const job of jobs) {
    const found = explore(modelOf(job), { coverage: job.coverage, statesMax });
    if (found.verdict === 'holds' || (isFirstLook && found.violation === null)) continue;
    return `${found.violation?.invariant ?? found.reasons[0] ?? found.verdict} (${job.title})`;
  }
  return null;
}

/** The machine whose code is judged is the one beside this file; one line says what was found. */
function judge(look: string, guard: string): void {
  let found: string | null;
  try {
    found = checkerFinds(guard, look === 'first');
  } catch (thrown) {
    found = `it throws: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  }
  process.stdout.write(`${found ?? 'holds'}\n`);
}

interface Ran {
  readonly stdout: string;
  /** The exit code, or the signal that ended it, or "null". */
  readonly end: string;
}

/** Runs node in a folder and resolves when it has ended, by itself or at the time limit. */
function node(folder: string, args: readonly string[]): Promise<Ran> {
  const { NODE_TEST_CONTEXT: _nested, ...env } = process.env;
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: JUDGE_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ stdout, end: String(code ?? signal) }));
  });
}

async function verifyFinds(folder: string, look: 'first' | 'whole', guard: string): Promise<string | null> {
  const { stdout, end } = await node(folder, ['dist/tools/mutate-protocol.js', '--judge', look, guard]);
  const said = stdout.trim();
  return said === 'holds' ? null : `verify: ${said === '' ? `ended with ${end}` : said}`;
}

async function testsFind(folder: string, names: readonly string[]): Promise<string | null> {
  for (const name of names) {
    const { stdout, end } = await node(folder, ['--test-reporter=tap', `${HANDOFF}/${name}.test.js`]);
    if (end === '0') continue;
    return `test: ${/^\s*not ok \d+ - (?!.*\.test\.js)(.*)$/m.exec(stdout)?.[1] ?? `${name} ended with ${end}`}`;
  }
  return null;
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
async function fateOf(folder: string, mutant: Mutant, code: string, isVerifyFirst: boolean): Promise<string | null> {
  const at = join(folder, HANDOFF, mutant.file);
  const lines = code.split('\n');
  lines[mutant.line] = mutant.text;
  writeFileSync(at, lines.join('\n'));
  try {
    const own = OWN_TESTS[mutant.file];
    if (isVerifyFirst) {
      return (
        (await verifyFinds(folder, 'first', mutant.guard)) ??
        (await verifyFinds(folder, 'whole', mutant.guard)) ??
        (await testsFind(folder, TESTS))
      );
    }
    return (
      (await testsFind(folder, own)) ??
      (await verifyFinds(folder, 'first', mutant.guard)) ??
      (await testsFind(
        folder,
        TESTS.filter((name) => !own.includes(name)),
      )) ??
      (await verifyFinds(folder, 'whole', mutant.guard))
    );
  } finally {
    writeFileSync(at, code);
  }
}

interface Judged {
  readonly mutant: Mutant;
  readonly fate: string | null;
}

/** Judges all, a few at a time; `onJudged` hears of them in order. */
async function judgeAll(
  mutants: readonly Mutant[],
  codes: ReadonlyMap<MutatedFile, string>,
  isVerifyFirst: boolean,
  onJudged: (judged: Judged) => void,
): Promise<void> {
  const fates = new Map<Mutant, string | null>();
  let next = 0;
  let told = 0;
  const lane = async (): Promise<void> => {
    const folder = copyOfCode();
    try {
      for (let mutant = mutants[next++]; mutant !== undefined; mutant = mutants[next++]) {
        fates.set(mutant, await fateOf(folder, mutant, codes.get(mutant.file) ?? '', isVerifyFirst));
        for (let done = mutants[told]; done !== undefined && fates.has(done); done = mutants[++told]) {
          onJudged({ mutant: done, fate: fates.get(done) ?? null });
        }
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

async function main(args: readonly string[]): Promise<void> {
  const isVerifyFirst = args.includes('--verify-first');
  const [file, inside] = args.filter((arg) => arg !== '--verify-first');
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  const counts = { byVerify: 0, byTest: 0, equivalent: 0, wrong: 0 };
  const unused = new Map(EQUIVALENT.map((entry) => [entry.mutant, entry]));
  const codes = new Map(FILES.map((name) => [name, readFileSync(join(ROOT, HANDOFF, name), 'utf8')] as const));
  const mutants = [...codes]
    .flatMap(([name, code]) => (file === undefined || file === name ? mutantsOf(name, code) : []))
    .filter(({ name }) => inside === undefined || name.includes(` ${inside}:`));
  await judgeAll(mutants, codes, isVerifyFirst, ({ mutant, fate }) => {
    const known = unused.get(mutant.name);
    unused.delete(mutant.name);
    if (fate === null && known !== undefined) counts.equivalent++;
    else if (fate === null || known !== undefined) counts.wrong++;
    if (fate?.startsWith('verify') === true) counts.byVerify++;
    else if (fate !== null) counts.byTest++;
    const verdict = fate === null ? (known === undefined ? 'SURVIVED' : 'same    ') : 'caught  ';
    const note = known !== undefined && fate !== null ? '; LISTED as equivalent, and is not' : '';
    say(`${verdict} ${mutant.name}\n         ${fate ?? known?.reason ?? 'nobody caught it'}${note}`);
  });
  if (file === undefined) {
    for (const name of unused.keys()) {
      counts.wrong++;
      say(`GONE     ${name}\n         is listed as equivalent and no such mutant is made`);
    }
  }
  const { byVerify, byTest, equivalent, wrong } = counts;
  if (wrong > 0 || mutants.length === 0) process.exitCode = 1;
  const caught = byVerify + byTest;
  const score = (100 * caught) / Math.max(mutants.length - equivalent, 1);
  say(
    `${mutants.length} mutants: ${caught} caught (${byVerify} by verify, ${byTest} by unit tests), ${equivalent} equivalent, ${wrong} unexplained; score ${score.toFixed(1)} %`,
  );
}

if (process.argv[2] === '--judge') judge(process.argv[3] ?? '', process.argv[4] ?? '');
else await main(process.argv.slice(2));
