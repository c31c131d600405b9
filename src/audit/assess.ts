/** From facts to a report: every rule on every node, pure. */
import { type Finding, isAtLeast, type Severity, sortFindings } from '../findings/finding.js';
import type { AuditReport, ReportCheck, ReportNode, ReportVerdict } from '../findings/report.js';
import { best, poolOf } from './ask.js';
import type { Disagreement, Fleet, NodeFacts, Source } from './facts.js';
import { sourceText } from './place.js';
import type { Observed, Rule, RuleGroup, RuleMeta, RuleOutcome } from './rule.js';

export interface AssessOptions {
  /** Findings from here up make the verdict. */
  readonly failOn: Severity;
  /** Groups of which everything applicable must have been checked. */
  readonly require: readonly RuleGroup[];
}

/** The check that a node answered at all. */
export const ANSWERS_ID = 'sources.answers';
export const DISAGREE_ID = 'sources.disagree';

interface Assessed {
  readonly check: ReportCheck;
  readonly findings: readonly Finding[];
}

export function assess(fleet: Fleet, rules: readonly Rule[], options: AssessOptions): AuditReport {
  const assessed = fleet.nodes.flatMap((node) => [answered(node), ...rules.map((rule) => apply(rule, fleet, node))]);
  const findings = sortFindings([...assessed.flatMap((one) => one.findings), ...fleet.disagreements.map(disagreement)]);
  const checks = assessed.map(({ check }) => check);
  return {
    nodes: fleet.nodes.map(reportNode),
    findings,
    checks,
    verdict: verdictOf(findings, checks, rules, options),
    waived: [],
    skipped: fleet.skipped,
    changes: [],
  };
}

/** Findings first: a deployment with a known fault is not "not checked". */
export function verdictOf(
  findings: readonly Finding[],
  checks: readonly ReportCheck[],
  rules: readonly Rule[],
  options: AssessOptions,
): ReportVerdict {
  if (findings.some(({ severity }) => isAtLeast(severity, options.failOn))) return 'findings';
  const required = new Set(rules.filter(({ meta }) => options.require.includes(meta.group)).map(({ meta }) => meta.id));
  required.add(ANSWERS_ID);
  const open = checks.some(({ id, status }) => status === 'not-checked' && required.has(id));
  return open || checks.length === 0 ? 'not-checked' : 'clean';
}

function apply(rule: Rule, fleet: Fleet, node: NodeFacts): Assessed {
  const { meta } = rule;
  const outcome = outcomeOf(rule, fleet, node);
  const findings = outcome.status === 'failed' ? outcome.findings.map((one) => findingOf(meta, node, one)) : [];
  const why = outcome.status === 'failed' ? findings.map(({ title }) => title).join('; ') : outcome.why;
  return { check: { id: meta.id, node: node.name, status: outcome.status, why }, findings };
}

function outcomeOf(rule: Rule, fleet: Fleet, node: NodeFacts): RuleOutcome {
  const { engines } = rule.meta;
  if (engines !== 'all') {
    if (node.engine === null) return { status: 'not-checked', why: 'nothing that was read names its engine' };
    if (!engines.includes(node.engine)) return { status: 'not-applicable', why: `a rule for ${engines.join(', ')}` };
  }
  try {
    return rule.check(fleet, node);
  } catch (error) {
    const name = error instanceof Error ? error.name : 'an unknown value';
    return { status: 'not-checked', why: `the rule itself failed (${name}); this is a fault of the audit` };
  }
}

function findingOf(meta: RuleMeta, node: NodeFacts, one: Observed): Finding {
  return {
    id: meta.id,
    severity: one.severity ?? meta.severity,
    title: one.title ?? meta.title,
    where: place(node.name, one.at),
    observed: one.observed,
    wanted: one.wanted,
    change: one.change ?? meta.change,
    references: [
      ...(one.references ?? meta.references),
      ...(meta.aisvs ?? []).map((id) => `OWASP AISVS ${id}`),
      ...(meta.cwe ?? []),
    ],
    certain: one.certain ?? true,
  };
}

function place(node: string, at: Source | null): Finding['where'] {
  if (at === null) return { node, source: '' };
  return { node, source: at.name, ...(at.line === undefined ? {} : { line: at.line }) };
}

function disagreement({ node, what, one, other }: Disagreement): Finding {
  return {
    id: DISAGREE_ID,
    severity: 'medium',
    title: `Two sources give different values for ${what}: ${one.value} and ${other.value}`,
    where: place(node, other.source),
    observed: `${one.value} (${sourceText(one.source)}), ${other.value} (${sourceText(other.source)})`,
    wanted: 'one value; or the sources are not of the same node or the same start',
    change: 'Audit again with sources of one start, or name the nodes apart (`--name`)',
    references: [],
    certain: true,
  };
}

function answered(node: NodeFacts): Assessed {
  const base = { id: ANSWERS_ID, node: node.name };
  const { endpoint } = node;
  const check: ReportCheck =
    endpoint === null
      ? { ...base, status: 'not-applicable', why: 'it was not asked' }
      : endpoint.answered
        ? { ...base, status: 'passed', why: endpoint.origin }
        : { ...base, status: 'not-checked', why: endpoint.failure ?? 'no answer' };
  return { check, findings: [] };
}

function reportNode(node: NodeFacts): ReportNode {
  const advertised = best(node.advertised);
  const pool = poolOf(node);
  const acceptLimit = best(node.acceptLimit);
  const version = best(node.versions);
  const ratio =
    advertised === null || pool === null || advertised.value === 0
      ? null
      : Math.floor((100 * pool.value.tokens) / advertised.value) / 100;
  const at = (said: { readonly source: Source } | null): string | null =>
    said === null ? null : sourceText(said.source);
  return {
    name: node.name,
    engine: node.engine,
    version: version?.value ?? null,
    role: node.role,
    advertised: advertised?.value ?? null,
    pool: pool?.value.tokens ?? null,
    acceptLimit: acceptLimit?.value ?? null,
    ratio,
    sources: {
      version: at(version),
      advertised: at(advertised),
      pool: at(pool),
      acceptLimit: at(acceptLimit),
      all: [...new Set(node.sources.map((source) => source.name))],
    },
  };
}
