/** The report as one page for a reader who is no engineer: no script, nothing loaded, fit for paper. */
import { createHash } from 'node:crypto';
import { truncate } from '../base/text.js';
import { checksSections } from './html-checks.js';
import { countChips, findingsSection } from './html-findings.js';
import { nodesSection, sourcesSection } from './html-nodes.js';
import { HTML_STYLE } from './html-style.js';
import { escapeMarkup } from './markup.js';
import { type Report, verdictText } from './report.js';
import { escapeReport } from './report-escape.js';

/** Characters of a sentence on top; longer ones belong further down. */
const HEADLINE_CHARACTERS_MAX = 300;

/** Nothing may be loaded or run, whatever stands in the page: only this very style applies. */
function contentPolicy(): string {
  const hash = createHash('sha256').update(HTML_STYLE).digest('base64');
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`;
}

export function renderHtml(report: Report): string {
  const safe = escapeReport(report);
  const title = escapeMarkup(`${safe.tool.name} ${safe.verb}: ${verdictText(safe)}`);
  const body = [
    header(safe),
    nodesSection(safe),
    findingsSection(safe),
    checksSections(safe),
    sourcesSection(safe),
    HOW_TO_READ,
  ];
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${contentPolicy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${HTML_STYLE}</style>
</head>
<body>
${body.filter((section) => section !== '').join('\n')}
</body>
</html>
`;
}

function header(report: Report): string {
  const { headline } = report;
  const made = report.createdAt === undefined ? '' : ` · ${escapeMarkup(report.createdAt)}`;
  const words = headline === undefined ? '' : `<p>${escapeMarkup(truncate(headline, HEADLINE_CHARACTERS_MAX))}</p>`;
  return `<header><h1>${escapeMarkup(`${report.tool.name} ${report.verb}`)} · version ${escapeMarkup(report.tool.version)}${made}</h1>
<div class="verdict t-${report.verdict}"><p class="words">${escapeMarkup(verdictText(report))}</p>${words}
${countChips(report.findings)}</div></header>`;
}

const HOW_TO_READ = `<section><h2>How to read this</h2>
<p>The <strong>context offered</strong> is the longest conversation that a node tells its clients it takes. The <strong>pool</strong> is
the memory that holds all conversations being served at once. If one conversation may be longer than the pool, a request can be
accepted that does not fit; on some engines and versions such a request has read memory that belongs to another customer.</p>
<p>Each finding says what was <strong>observed</strong>, what was <strong>wanted</strong>, and the one <strong>change</strong> to make. “A sign, not a proof” means
that the condition was seen, and its effect was not. A <strong>waived</strong> finding is known and accepted until the day given; it does not count
towards the verdict until then.</p>
<p>The verdict is the worst of two things: a finding at or above the threshold, or a required check that could not be made.</p>
</section>`;
