/** The verdict of `cofferdam verify` in words and as JSON. */
import { CATALOGUE } from '../handoff/faults.js';
import { type FaultFinding, type JobResult, modelOf, type Summary } from '../verify/campaign.js';
import { diagramOf } from '../verify/diagram.js';
import { scopeInWords } from '../verify/models/handoff-scope.js';
import { storyOf } from '../verify/story.js';

const number = (value: number): string => value.toLocaleString('en-US');
const mebibytes = (bytes: number): string => `${number(Math.round(bytes / 2 ** 20))} MiB`;

/** One world: its bounds, and what was found. */
export function worldLines({ job, found }: JobResult): string[] {
  const lines = [
    `${found.verdict.padEnd(11)} ${job.title}${found.reasons.map((reason) => `; ${reason}`).join('')}`,
    `            ${scopeInWords(job.scope)}`,
    `            ${number(found.distinct)} distinct states, ${number(found.generated)} generated, depth ${found.depth}, ${number(found.rate)} distinct states a CPU-second, ${mebibytes(found.memoryBytes)}; ${found.stuck === null ? 'liveness not checked' : `${number(found.stuck)} states cannot settle`}`,
  ];
  if (found.violation !== null) return lines;
  const fired = Object.entries(found.coverage).filter(([, times]) => times > 0);
  lines.push(`            actions: ${fired.map(([name, times]) => `${name} ${number(times)}`).join(', ')}`);
  const seen = Object.entries(found.witnesses).filter(([, depth]) => depth !== null);
  lines.push(`            seen: ${seen.map(([name, depth]) => `${name} (after ${depth})`).join(', ')}`);
  return lines;
}

export function totalLine({ distinct, generated, depth, rate, collisionProbability }: Summary): string {
  return `${number(distinct)} distinct states, ${number(generated)} generated, depth ${depth}, ${number(rate)} distinct states a CPU-second; a fingerprint collision has a probability of ${collisionProbability.toExponential(1)}`;
}

/** A counterexample: what became of the pages, each step in words, the diagram with both pools. */
export function storyLines({ job, found }: JobResult): string[] {
  const { violation } = found;
  if (violation === null) return [];
  const story = storyOf(modelOf(job), violation.path, violation.words);
  return [
    `${violation.invariant} is broken after ${violation.path.length} steps; no shorter way leads there`,
    `  ${violation.words}`,
    ...story.pages.map((words) => `  ${words}`),
    ...(violation.kind === 'liveness'
      ? ['  where it stands for ever:', ...story.stand.map((words) => `    ${words}`)]
      : []),
    '',
    ...story.steps.map(({ step, words }) => `${String(step).padStart(4)}  ${words}`),
    '',
    diagramOf(story),
  ];
}

export const FAULT_HEAD: string = `${'fault'.padEnd(26)}${'verdict'.padEnd(12)}${'first broken invariant'.padEnd(30)}${'depth'.padStart(6)}${'states'.padStart(12)}  scope`;

export function faultRow(finding: FaultFinding): string {
  const { fault, verdict, scope } = finding;
  const { invariant, depth, states } = faultJson(finding);
  const words = [fault.padEnd(26), verdict.padEnd(12), (invariant ?? '-').padEnd(30)];
  return `${words.join('')}${String(depth ?? '-').padStart(6)}${number(states).padStart(12)}  ${scope}`;
}

/** What the fault is, and how each side of it ended. */
export function faultLines({ fault, off, on }: FaultFinding): string[] {
  const { deviation, source, guards } = CATALOGUE[fault];
  return [
    `${fault}: ${deviation} (${source})`,
    `without ${guards.join(', ')}: ${off.verdict}; ${totalLine(off)}`,
    `with every guard: ${on.verdict}; ${totalLine(on)}`,
  ];
}

interface FaultJson {
  readonly fault: string;
  readonly verdict: string;
  readonly invariant: string | null;
  readonly depth: number | null;
  readonly states: number;
}

function faultJson({ fault, verdict, broken, off, on }: FaultFinding): FaultJson {
  const violation = broken?.found.violation ?? null;
  const run = verdict === 'unguarded' ? on : off;
  return {
    fault,
    verdict,
    invariant: violation?.invariant ?? null,
    depth: violation?.path.length ?? null,
    states: run.distinct,
  };
}

/** The top is the run without a fault, or the only run there is. */
export function verdictJson(scope: string, top: Summary, findings: readonly FaultFinding[]): object {
  const { verdict, distinct, generated, depth, rate } = top;
  return { scope, verdict, distinct, generated, depth, rate, faults: findings.map((finding) => faultJson(finding)) };
}
