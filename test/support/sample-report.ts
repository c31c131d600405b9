/** Reports for tests of renderers: the public incident's deployment with something in every section, and an empty one. */
import type { Finding } from '../../src/findings/finding.js';
import { makeReport, poolRatio, type Report, type ReportCheck, type ReportNode } from '../../src/findings/report.js';
import type { RuleText } from '../../src/findings/rule-text.js';

export function sampleFinding(over: Partial<Finding> = {}): Finding {
  return {
    id: 'capacity.pool-below-context',
    severity: 'critical',
    title: 'prefill offers a context of 1048576 tokens and its pool holds 681280',
    where: { node: 'prefill', source: 'http://prefill:30000/server_info' },
    observed: 'context 1048576, pool 681280: ratio 0.64',
    wanted: 'a pool of at least 1048576 tokens, or a context of at most 681280',
    change: 'Start prefill with `--context-length 681280`, or give it more memory',
    references: ['https://github.com/sgl-project/sglang/issues/30233', 'CWE-226', 'OWASP AISVS C8.2'],
    certain: true,
    ...over,
  };
}

const FINDINGS: readonly Finding[] = [
  sampleFinding({
    id: 'sharing.prefix-unsalted',
    severity: 'medium',
    title: 'The prefix cache is on, and no salt was seen',
    where: { node: 'decode', source: 'k8s/decode.yaml', line: 41 },
    observed: '`--enable-cache-report`, no `extra_key`',
    wanted: 'a salt per tenant',
    change: 'Let the gateway set `extra_key`, or start with `--disable-radix-cache`',
    references: ['https://nvd.nist.gov/vuln/detail/CVE-2025-46570'],
    certain: false,
  }),
  sampleFinding(),
  sampleFinding({
    id: 'version.rejection-hand-off',
    severity: 'critical',
    title: 'SGLang 0.5.18 hands a rejected request on to decode',
    where: { node: 'prefill', source: 'logs/prefill.log', line: 3 },
    observed: '0.5.18',
    wanted: '0.5.22 or later',
    change: 'Upgrade to 0.5.23',
  }),
  sampleFinding({
    id: 'exposure.no-api-key',
    severity: 'high',
    title: 'No key is asked for',
    where: { node: 'decode', source: 'k8s/decode.yaml', line: 33 },
    observed: 'no `--api-key`, bound to 0.0.0.0',
    wanted: 'a key, or a policy that lets only the router in',
    change: 'Start with `--api-key`',
    references: ['OWASP AISVS C12.1'],
    waiver: { reason: 'the mesh lets only the router in', expires: '2027-01-31', expired: false },
  }),
  sampleFinding({
    id: 'exposure.no-api-key',
    severity: 'high',
    title: 'No key is asked for',
    where: { node: 'prefill', source: 'k8s/prefill.yaml', line: 30 },
    observed: 'no `--api-key`, bound to 0.0.0.0',
    wanted: 'a key, or a policy that lets only the router in',
    change: 'Start with `--api-key`',
    references: [],
    waiver: { reason: 'the mesh comes next month', expires: '2026-06-30', expired: true },
  }),
  sampleFinding({
    id: 'detection.verification-unseen',
    severity: 'info',
    title: 'Nothing printed shows that checksums were compared',
    observed: 'no line of the log names them',
    wanted: 'a line or a counter',
    change: 'None: take it into account',
    references: [],
  }),
];

const NODES: readonly ReportNode[] = [
  {
    name: 'prefill',
    engine: 'sglang',
    version: '0.5.18',
    role: 'prefill',
    advertised: 1048576,
    pool: 681280,
    acceptLimit: 681274,
    ratio: poolRatio(681280, 1048576),
    sources: [
      { field: 'advertised', value: '1048576', source: 'http://prefill:30000/v1/models' },
      { field: 'pool', value: '681280', source: 'http://prefill:30000/server_info' },
      { field: 'pool', value: '681280', source: 'logs/prefill.log', line: 212 },
    ],
  },
  {
    name: 'decode',
    engine: 'sglang',
    version: '0.5.18',
    role: 'decode',
    advertised: 1048576,
    pool: 2040000,
    acceptLimit: 1048575,
    ratio: poolRatio(2040000, 1048576),
    sources: [{ field: 'pool', value: '2040000', source: 'http://decode:30000/server_info' }],
  },
  {
    name: 'router',
    engine: null,
    version: null,
    role: 'router',
    advertised: null,
    pool: null,
    acceptLimit: null,
    ratio: null,
    sources: [],
  },
];

const CHECKS: readonly ReportCheck[] = [
  { id: 'capacity.pool-below-context', node: 'prefill', status: 'failed', why: 'pool 681280 of context 1048576' },
  { id: 'capacity.pool-below-context', node: 'decode', status: 'passed', why: 'pool 2040000 of context 1048576' },
  { id: 'version.rejection-hand-off', node: 'prefill', status: 'failed', why: '0.5.18' },
  {
    id: 'rejection.deferred-release',
    node: 'decode',
    status: 'not-checked',
    why: 'the command line of decode was not given',
  },
  { id: 'sharing.prefix-unsalted', node: 'decode', status: 'failed', why: 'no salt' },
  { id: 'sharing.tier-ignores-salt', node: '', status: 'not-applicable', why: 'no outer tier is configured' },
  {
    id: 'detection.kv-canary',
    node: 'prefill',
    status: 'not-checked',
    why: '/server_info has no field for it before 0.5.20',
  },
];

/** A verdict of findings, with something in every section. */
export function incidentReport(over: Partial<Report> = {}): Report {
  return makeReport({
    tool: { name: 'cofferdam', version: '0.1.0' },
    verb: 'audit',
    createdAt: '2026-11-30T12:00:00Z',
    headline: 'The public incident can happen here: prefill accepts prompts that its pool does not hold',
    failOn: 'high',
    required: ['capacity', 'version', 'rejection'],
    nodes: NODES,
    findings: FINDINGS,
    checks: CHECKS,
    changes: [{ node: 'prefill', field: 'pool', before: '1050000', after: '681280' }],
    skipped: [{ source: 'k8s/notes.txt', why: 'of no known kind' }],
    ...over,
  });
}

/** Nothing found, and what was required could not be checked. */
export function uncheckedReport(): Report {
  const checks = CHECKS.filter(({ status }) => status === 'not-checked');
  return incidentReport({ findings: [], checks, changes: [], skipped: [], nodes: [] });
}

/** Nothing at all: as a probe or an exposure without findings gives it. */
export function cleanReport(): Report {
  return makeReport({
    tool: { name: 'cofferdam', version: '0.1.0' },
    verb: 'probe',
    failOn: 'high',
    required: [],
    findings: [],
  });
}

export const SAMPLE_RULES: readonly RuleText[] = [
  {
    id: 'capacity.pool-below-context',
    title: 'The pool of a node is smaller than the context that it offers',
    why: 'A prompt that the edge lets in may not fit the pool. SGLang before 0.5.20 went on with such a request.',
    change: 'Lower the context to the pool, or enlarge the pool.',
    references: ['https://github.com/sgl-project/sglang/issues/30233'],
  },
];
