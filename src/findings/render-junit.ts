/** JUnit's XML, as test reporters of CI systems read it: a check is a test case, and a finding that fails the run is a failure. */
import { type Finding, placeText, waiverText } from './finding.js';
import { escapeMarkup } from './markup.js';
import { failsRun, type Report, type ReportCheck, requiredUnchecked } from './report.js';
import { escapeReport } from './report-escape.js';

type Outcome = 'passed' | 'failure' | 'skipped';

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
 * or does not apply, is skipped; one that was required and not made is a failure, since what was not checked is not clean.
 */
export function renderJunit(report: Report): string {
  const safe = escapeReport(report);
  const cases = [...safe.findings.map((finding) => findingCase(finding, safe)), ...checkCases(safe)];
  const count = (outcome: Outcome): number => cases.filter((one) => one.outcome === outcome).length;
  const name = `name=${quoted(`${safe.tool.name} ${safe.verb}`)}`;
  const counts = `tests="${cases.length}" failures="${count('failure')}" errors="0" skipped="${count('skipped')}"`;
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
function checkCases(report: Report): TestCase[] {
  const found = new Set(report.findings.map(({ id, where }) => JSON.stringify([id, where.node])));
  const required = requiredUnchecked(report);
  const known = new Set(required);
  const unheardOf = required.filter((check) => !report.checks.includes(check));
  return [...report.checks, ...unheardOf]
    .filter(({ id, node, status }) => status !== 'failed' || !found.has(JSON.stringify([id, node])))
    .map((check) => checkCase(check, known.has(check)));
}

function checkCase({ id, node, status, why }: ReportCheck, required: boolean): TestCase {
  const name = node === '' ? 'the deployment' : node;
  if (status === 'passed') return { className: id, name, outcome: 'passed', message: '', details: why };
  if (status === 'failed') return { className: id, name, outcome: 'failure', message: why, details: why };
  const message = `${status === 'not-checked' ? 'not checked' : 'not applicable'}: ${why}`;
  return { className: id, name, outcome: required ? 'failure' : 'skipped', message, details: '' };
}

function caseXml({ className, name, outcome, message, details }: TestCase): string {
  const open = `    <testcase classname=${quoted(className)} name=${quoted(name)}`;
  switch (outcome) {
    case 'skipped':
      return `${open}><skipped message=${quoted(message)}/></testcase>`;
    case 'failure':
      return `${open}><failure message=${quoted(message)}>${escapeMarkup(details)}</failure></testcase>`;
    case 'passed': {
      const text = [message, details].filter((part) => part !== '').join('\n');
      return text === '' ? `${open}/>` : `${open}><system-out>${escapeMarkup(text)}</system-out></testcase>`;
    }
  }
}
