import { countBySeverity, type Finding, isOpen, placeText, SEVERITIES, type Severity, waiverText } from './finding.js';
import { escapeMarkup, escapeWithCode, safeLink } from './markup.js';
import type { Report } from './report.js';

const HEADINGS: Readonly<Record<Severity, string>> = {
  critical: 'Critical: act now',
  high: 'High: fix soon',
  medium: 'Medium',
  low: 'Low',
  info: 'For information',
};

/** How many of each severity count, and how many are waived. */
export function countChips(findings: readonly Finding[]): string {
  const open = findings.filter(isOpen);
  const counts = countBySeverity(open);
  const chips = SEVERITIES.map((name) => {
    const none = counts[name] === 0 ? ' none' : '';
    return `<li class="chip t-${name}${none}">${counts[name]} ${name}</li>`;
  });
  const waived = findings.length - open.length;
  if (waived > 0) chips.push(`<li class="chip none">${waived} waived</li>`);
  return `<ul class="counts">${chips.join('')}</ul>`;
}

/** Findings that count by severity, worst first; those waived come after. */
export function findingsSection({ findings }: Report): string {
  const open = findings.filter(isOpen);
  const waived = findings.filter((finding) => !isOpen(finding));
  const sections = SEVERITIES.map((severity) => {
    const of = open.filter((finding) => finding.severity === severity);
    return group(HEADINGS[severity], of);
  });
  sections.push(group('Waived', waived));
  const shown = sections.filter((section) => section !== '').join('\n');
  return shown === '' ? '<section><h2>Findings</h2><p>Nothing was found.</p></section>' : shown;
}

function group(heading: string, findings: readonly Finding[]): string {
  if (findings.length === 0) return '';
  return `<section><h2>${heading}</h2>\n${findings.map(article).join('\n')}</section>`;
}

function article(finding: Finding): string {
  const waiver = waiverText(finding);
  const rows = [
    row('Observed', escapeWithCode(finding.observed)),
    row('Wanted', escapeWithCode(finding.wanted)),
    row('Change', `<span class="change">${escapeWithCode(finding.change)}</span>`),
    ...(waiver === null ? [] : [row('Waiver', escapeMarkup(waiver))]),
    ...(finding.references.length === 0 ? [] : [row('References', references(finding.references))]),
  ];
  const sign = finding.certain ? '' : ' <span class="soft">(a sign, not a proof)</span>';
  return `<article class="t-${finding.severity}${isOpen(finding) ? '' : ' waived'}">
<h3>${escapeWithCode(finding.title)}${sign}</h3>
<p class="soft"><span class="chip">${finding.severity}</span> ${escapeMarkup(placeText(finding.where))} · <code>${escapeMarkup(finding.id)}</code></p>
<dl>${rows.join('')}</dl></article>`;
}

const row = (name: string, html: string): string => `<dt>${name}</dt><dd>${html}</dd>`;

function references(texts: readonly string[]): string {
  const items = texts.map((text) => {
    const link = safeLink(text);
    const words = escapeMarkup(text);
    return link === null
      ? `<li>${words}</li>`
      : `<li><a href="${escapeMarkup(link)}" rel="noopener noreferrer nofollow">${words}</a></li>`;
  });
  return `<ul class="refs">${items.join('')}</ul>`;
}
