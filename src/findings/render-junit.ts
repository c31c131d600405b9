/** JUnit's XML, as test reporters of CI systems read it: a check is a test case, and a finding that fails the run is a failure. */
import { type Finding, placeText, waiverText } from './finding.js';
import { escapeMarkup } from './markup.js';
import { type CheckStatus, failsRun, type Report, type ReportCheck, requiredUnchecked, verdictText } from './report.js';
import { escapeReport } from './report-escape.js';

type Outcome = 'passed' | 'failure' | 'error' | 'skipped';

interface TestCase {
  /** The rule. */
  readonly className: string;
  /** Where. */
  readonly name: string;
  readonly outcome: Outcome;
  readonly message: string;
  readonly details: string;
}

/**
 * A finding at or above the threshold is a failure; one below it, or waived, passes and says so. A check that was not made,
 * or does not apply, is skipped. Where what was required was not checked, one error says so: the suite is not green.
 */
export function renderJunit(report: Report): string {
  const safe = escapeReport(report);
  const findings = safe.findings.map((finding) => findingCase(finding, safe));
  const cases = [...findings, ...checkCases(safe), ...verdictCases(safe)];
  const count = (outcome: Outcome): number => cases.filter((one) => one.outcome === outcome).length;
  const name = `name=${quoted(`${safe.tool.name} ${safe.verb}`)}`;
  const counts = `tests="${cases.length}" failures="${count('failure')}" errors="${count('error')}" skipped="${count('skipped')}"`;
  const time = safe.createdAt === undefined ? '' : ` timestamp=${quoted(safe.createdAt)}`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${name} ${counts}>`,
    `  <testsuite ${name} ${counts}${time}>`,
    ...cases.map(caseXml),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

const quoted = (text: string): string => `"${escapeMarkup(text)}"`;

function findingCase(finding: Finding, report: Report): TestCase {
  const waiver = waiverText(finding);
  const lines = [
    `severity: ${finding.severity}`,
    ...(waiver === null ? [] : [waiver]),
    `observed: ${finding.observed}`,
    `wanted: ${finding.wanted}`,
    `change: ${finding.change}`,
    ...(finding.certain ? [] : ['a sign, not a proof']),
    ...finding.references.map((reference) => `see: ${reference}`),
  ];
  return {
    className: finding.id,
    name: placeText(finding.where),
    outcome: failsRun(finding, report.failOn) ? 'failure' : 'passed',
    message: finding.title,
    details: lines.join('\n'),
  };
}

/** A check that failed is shown by its findings, if there are any. */
function checkCases({ checks, findings }: Report): TestCase[] {
  const found = new Set(findings.map(({ id, where }) => JSON.stringify([id, where.node])));
  return checks
    .filter(({ id, node, status }) => status !== 'failed' || !found.has(JSON.stringify([id, node])))
    .map(checkCase);
}

const CHECK_OUTCOME: Readonly<Record<CheckStatus, Outcome>> = {
  passed: 'passed',
  failed: 'failure',
  'not-checked': 'skipped',
  'not-applicable': 'skipped',
};

function checkCase({ id, node, status, why }: ReportCheck): TestCase {
  const outcome = CHECK_OUTCOME[status];
  const message = outcome === 'skipped' ? `${status}: ${why}` : outcome === 'failure' ? why : '';
  const details = outcome === 'skipped' ? '' : why;
  return { className: id, name: node === '' ? 'the deployment' : node, outcome, message, details };
}

function verdictCases(report: Report): TestCase[] {
  if (report.verdict !== 'not-checked') return [];
  const lines = requiredUnchecked(report).map(({ id, node, why }) => `${`${id} ${node}`.trim()}: ${why}`);
  const message = verdictText(report);
  return [{ className: 'verdict', name: 'what was required', outcome: 'error', message, details: lines.join('\n') }];
}

function caseXml({ className, name, outcome, message, details }: TestCase): string {
  const open = `    <testcase classname=${quoted(className)} name=${quoted(name)}`;
  switch (outcome) {
    case 'skipped':
      return `${open}><skipped message=${quoted(message)}/></testcase>`;
    case 'failure':
    case 'error':
      return `${open}><${outcome} message=${quoted(message)}>${escapeMarkup(details)}</${outcome}></testcase>`;
    case 'passed': {
      const text = [message, details].filter((part) => part !== '').join('\n');
      return text === '' ? `${open}/>` : `${open}><system-out>${escapeMarkup(text)}</system-out></testcase>`;
    }
  }
}
