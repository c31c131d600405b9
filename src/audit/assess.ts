/** From facts to a report: every rule on every node, pure. */
import type { Finding } from '../findings/finding.js';
import type { NodeSource, ReportCheck, ReportNode, ReportParts } from '../findings/report.js';
import { poolRatio } from '../findings/report.js';
import { best, holdsPool, poolOf } from './ask.js';
import type { Disagreement, Fleet, NodeFacts, Said, Source } from './facts.js';
import { sourceText } from './place.js';
import { secretsGone } from './secrets.js';
import { notApplicable, type Observed, type Rule, type RuleMeta, type RuleOutcome } from './rule.js';
import { KEPT_FLAGS } from './kept-flags.js';

/** The check that a node answered at all. */
export const ANSWERS_ID = 'sources.answers';
export const DISAGREE_ID = 'sources.disagree';

export type Assessment = Required<Pick<ReportParts, 'nodes' | 'findings' | 'checks' | 'skipped'>>;

interface Assessed {
  readonly check: ReportCheck;
  readonly findings: readonly Finding[];
}

export function assess(fleet: Fleet, rules: readonly Rule[]): Assessment {
  const assessed = fleet.nodes.flatMap((node) => [answered(node), ...rules.map((rule) => apply(rule, fleet, node))]);
  return {
    nodes: fleet.nodes.map(reportNode),
    findings: [...assessed.flatMap((one) => one.findings), ...fleet.disagreements.map(disagreement)],
    checks: [...assessed.map(({ check }) => check), ...noEngine(fleet)],
    skipped: fleet.skipped.map(({ name, why }) => ({ source: name, why })),
  };
}

/** With routers and caches alone no capacity was compared, although no rule of it applies to any of them. */
function noEngine({ nodes }: Fleet): ReportCheck[] {
  if (nodes.length === 0 || nodes.some((node) => node.engine === null || holdsPool(node))) return [];
  const why = 'no engine is among what was read, so no pool was compared with a context; give its URL, log or manifest';
  return [{ id: 'capacity.pool-below-context', node: '', status: 'not-checked', why }];
}

function apply(rule: Rule, fleet: Fleet, node: NodeFacts): Assessed {
  const { meta } = rule;
  const outcome = outcomeOf(rule, fleet, node);
  const findings = outcome.status === 'failed' ? outcome.findings.map((one) => findingOf(meta, node, one)) : [];
  const why = outcome.status === 'failed' ? findings.map(({ title }) => title).join('; ') : outcome.why;
  return { check: { id: meta.id, node: node.name, status: outcome.status, why: secretsGone(why) }, findings };
}

/** One text for each rule: nodes come in thousands. */
const OTHER_ENGINE = new WeakMap<Rule, RuleOutcome>();

function otherEngine(rule: Rule, engines: readonly string[]): RuleOutcome {
  const known = OTHER_ENGINE.get(rule);
  if (known !== undefined) return known;
  const outcome = notApplicable(`a rule for ${engines.join(', ')}`);
  OTHER_ENGINE.set(rule, outcome);
  return outcome;
}

function outcomeOf(rule: Rule, fleet: Fleet, node: NodeFacts): RuleOutcome {
  const { engines } = rule.meta;
  if (engines !== 'all') {
    if (node.engine === null) return { status: 'not-checked', why: 'nothing that was read names its engine' };
    if (!engines.includes(node.engine)) return otherEngine(rule, engines);
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
    ...(one.subject === undefined ? {} : { subject: one.subject }),
    title: secretsGone(one.title ?? meta.title),
    where: place(node.name, one.at),
    observed: secretsGone(one.observed),
    wanted: secretsGone(one.wanted),
    change: secretsGone(one.change ?? meta.change),
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
    change: 'Audit again with sources of one start, each in a file that is named after its node',
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
  const pool = poolOf(node)?.value.tokens ?? null;
  const advertised = best(node.advertised)?.value ?? null;
  return {
    name: node.name,
    engine: node.engine,
    version: best(node.versions)?.value ?? null,
    role: node.role,
    advertised,
    pool,
    acceptLimit: best(node.acceptLimit)?.value ?? null,
    ratio: poolRatio(pool, advertised),
    sources: sourcesOf(node),
  };
}

/** Where each number came from; and the flags that a baseline compares. */
function sourcesOf(node: NodeFacts): NodeSource[] {
  const pools: Said<string> = node.pool.map(({ value, source }) => ({ value: String(value.tokens), source }));
  return [
    ...told('version', node.versions),
    ...told('role', node.roles),
    ...told('advertised', node.advertised),
    ...told('pool', pools),
    ...told('acceptLimit', node.acceptLimit),
    ...KEPT_FLAGS.flatMap((name) => {
      const said = node.flags.get(name);
      return said === undefined
        ? []
        : told(
            `--${name}`,
            said.map(({ value, source }) => ({ value: value.value ?? '', source })),
          );
    }),
  ];
}

/** Ranks of one node that tell the same figure are told once. */
function told(field: string, said: Said<string | number>): NodeSource[] {
  const seen = new Set<string>();
  return said.flatMap(({ value, source }) => {
    const key = JSON.stringify([value, source.kind, source.name]);
    if (seen.has(key)) return [];
    seen.add(key);
    const line = source.line === undefined || source.line < 1 ? {} : { line: source.line };
    return [{ field, value: secretsGone(String(value)), source: source.name, ...line }];
  });
}
