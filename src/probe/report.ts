/** From the record of a run to what is said of it: findings and checks for the common formats, and one object for JSON. Pure. */
import type { Finding, Severity } from '../findings/finding.js';
import { makeReport, type Report, type ReportCheck } from '../findings/report.js';
import type { RunRecord } from './record.js';
import type { ExperimentResult, Hit } from './result.js';
import { probeRule, type ProbeRuleId } from './rule-texts.js';

/** The findings' report of a run. Its verdict is theirs; the exit code is that of the run's own. */
export function probeReport(record: RunRecord): Report {
  const { header } = record;
  const required = record.plan.filter((each) => each.required).map(({ name }) => checkId(name));
  return makeReport({
    tool: { name: 'cofferdam', version: header.tool },
    verb: 'probe',
    createdAt: header.startedAt,
    headline: headlineOf(record),
    failOn: 'high',
    required: required.length > 0 ? required : header.required.map(checkId),
    findings: [...hitFindings(record), ...record.results.flatMap((result) => resultFindings(result, record))],
    checks: record.results.map((result) => checkOf(result, header.endpoint)),
  });
}

const checkId = (name: string): string => `probe.${name}`;

/** The verdict in a sentence. */
export function headlineOf({ verdict, hits, results, knowledge, stopped, whole }: RunRecord): string {
  if (knowledge === null && stopped !== null) return `could not run: ${stopped}`;
  const names = (...verdicts: readonly string[]): string =>
    results
      .filter((result) => verdicts.includes(result.verdict))
      .map(({ name }) => name)
      .join(', ');
  const words = {
    leaks: `leaks: ${hits.length > 0 ? `${hits.length} times a marker of one tenant stood in an answer to another` : `seen by ${names('leaks')}`}`,
    starves: `starves: one tenant can cost another its service (${names('starves')})`,
    'could-not-run': `could not run: ${names('could-not-run') || 'not every experiment was made'}`,
    'no-power': `no power to tell: ${names('no-power', 'no-cache-seen') || 'nothing was seen that could tell'}`,
    isolated: 'isolated: nothing of one tenant was seen from another, and every control worked',
  }[verdict];
  const end = stopped !== null ? `; stopped, since ${stopped}` : whole ? '' : '; the record has no end';
  return `${words}${end}`;
}

function hitFindings(record: RunRecord): Finding[] {
  const byExperiment = new Map<string, Hit[]>();
  for (const hit of record.hits) byExperiment.set(hit.experiment, [...(byExperiment.get(hit.experiment) ?? []), hit]);
  return [...byExperiment].map(([experiment, hits]) => {
    const pairs = [
      ...new Set(hits.map(({ owner, tenant }) => `${owner ?? 'somebody outside of this run'} to ${tenant}`)),
    ];
    const longest = hits.reduce((a, b) => (b.length > a.length ? b : a));
    const what = `${hits.length} hits (from ${pairs.join(', from ')}), the longest ${longest.length} characters. First: ${hitText(hits[0]!)}`;
    return finding('probe.foreign-content', experiment, what, record);
  });
}

/** What the maintainers of an engine would ask for, in a sentence. */
export function hitText(hit: Hit): string {
  const tokens = hit.promptTokens === null ? '' : `, ${hit.promptTokens} tokens`;
  const overlap =
    hit.overlapMs === null
      ? 'overlap unknown'
      : hit.overlapMs === 0
        ? 'never open together'
        : `open together for ${hit.overlapMs} ms`;
  const left =
    hit.leftBefore.length === 0 ? 'nothing left before' : `left before: ${hit.leftBefore.slice(-8).join(', ')}`;
  return (
    `${hit.request} of ${hit.tenant} (${hit.sentMs} to ${hit.endMs} ms, ${hit.promptCharacters} characters${tokens}) got ` +
    `${hit.length} characters of ${hit.marker === null ? 'a marker that this run never made' : `the marker ${hit.marker}`} ` +
    `from its character ${hit.markerOffset} on, at character ${hit.offset} of ${hit.place}; ` +
    `planted by ${hit.owner ?? 'nobody of this run'} with ${hit.planted ?? 'an unknown request'}, ${overlap}, ${left}`
  );
}

/** The rule of a leak that left no marker, by experiment. */
const LEAK_RULES: Readonly<Record<string, ProbeRuleId>> = {
  'abort-storm': 'probe.answers-changed',
  handles: 'probe.handle-accepted',
  'prefix-timing': 'probe.prefix-shared',
};

const VERDICT_RULES: Readonly<Record<string, ProbeRuleId>> = {
  starves: 'probe.starved',
  'no-power': 'probe.no-power',
  'could-not-run': 'probe.could-not-run',
};

function resultFindings(result: ExperimentResult, record: RunRecord): Finding[] {
  const own = result.verdict === 'leaks' && result.hits === 0 ? (LEAK_RULES[result.name] ?? 'probe.leaks') : null;
  const rule = own ?? VERDICT_RULES[result.verdict] ?? null;
  const words = [result.control, ...result.evidence].join(' ');
  return [...(rule === null ? [] : [finding(rule, result.name, words, record)]), ...boundaryFindings(result, record)];
}

/** Answers with 200 that were none, worst kind first; a placeholder is what the incident looked like. */
const NO_ANSWERS: readonly (readonly [kind: string, severity: Severity, words: string])[] = [
  ['placeholder', 'critical', 'the endpoint counted far fewer tokens than were sent'],
  ['truncated', 'high', 'the endpoint counted another number of tokens than were sent'],
  ['empty', 'high', 'the answer was empty'],
  ['wrong', 'high', 'the answer did not hold what the prompt said'],
];

/** The boundary says each kind of answer in a sentence of its own, which begins with the kind. */
function boundaryFindings(result: ExperimentResult, record: RunRecord): Finding[] {
  if (result.name !== 'boundary') return [];
  return NO_ANSWERS.flatMap(([kind, severity, words]) => {
    const said = result.evidence.find((sentence) => sentence.startsWith(`${kind}: `));
    if (said === undefined) return [];
    const base = finding('probe.answered-beyond-limit', result.name, `${words}. ${said}`, record);
    return [
      { ...base, severity, title: `${base.title}: ${kind}`, where: { ...base.where, source: `boundary ${kind}` } },
    ];
  });
}

function finding(id: ProbeRuleId, experiment: string, observed: string, { header }: RunRecord): Finding {
  const { severity, title, wanted, change, references, certain } = probeRule(id);
  const where = { node: header.endpoint, source: experiment };
  return { id, severity, title, where, observed, wanted, change, references, certain };
}

function checkOf(result: ExperimentResult, node: string): ReportCheck {
  const status = (
    { isolated: 'passed', leaks: 'failed', starves: 'failed', 'no-cache-seen': 'not-applicable' } as const
  )[result.verdict as string];
  return { id: checkId(result.name), node, status: status ?? 'not-checked', why: result.control };
}

/** What `--output json` writes. Fields may be added; what is there keeps its meaning. */
export function probeJson(record: RunRecord): string {
  const { header, knowledge, results, plan, hits, verdict, stopped, whole, requests, tokens, traffic } = record;
  const { record: _, ...known } = knowledge ?? { record: 'knowledge' };
  const object = {
    verdict,
    experiments: results.map((result) => {
      const { name, verdict: own, sent, hits: count, bound, control, evidence, ...rest } = result;
      const planned = plan.find((each) => each.name === name);
      return {
        name,
        verdict: own,
        sent,
        hits: count,
        bound,
        control,
        evidence,
        ...rest,
        required: header.required.includes(name),
        ...(planned === undefined ? {} : { method: planned.method }),
      };
    }),
    headline: headlineOf(record),
    tool: { name: 'cofferdam', version: header.tool },
    runId: header.runId,
    startedAt: header.startedAt,
    endpoint: header.endpoint,
    model: header.model,
    tenants: header.tenants,
    seed: header.seed,
    target: knowledge === null ? null : known,
    spent: { requests, tokens },
    throttled: traffic.reduce((all, each) => all + each.throttled, 0),
    hits,
    stopped,
    whole,
  };
  return `${JSON.stringify(object, null, 2)}\n`;
}
