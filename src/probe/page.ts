/** The report as one page that a security review can file: no script, nothing loaded, fit for paper. Pure. */
import { createHash } from 'node:crypto';
import { escapeControl } from '../base/text.js';
import { findingsSection } from '../findings/html-findings.js';
import { HTML_STYLE } from '../findings/html-style.js';
import { escapeMarkup, escapeWithCode } from '../findings/markup.js';
import { escapeReport } from '../findings/report-escape.js';
import { whole } from './plan.js';
import { samplesPlot, timesPlot } from './plots.js';
import type { RunRecord } from './record.js';
import { headlineOf, probeReport } from './report.js';
import type { ExperimentResult, Hit } from './result.js';
import { fragmentChanceBound } from './stats/fragment.js';
import { boundText } from './table.js';

const STYLE = `${HTML_STYLE}
.plot { max-width: 100%; height: auto; } .plot text { font-size: 11px; fill: var(--ink); } .plot text.soft { fill: var(--soft); }
.v-leaks, .v-starves { color: var(--critical); font-weight: 700; } .v-isolated { color: var(--good); font-weight: 700; }
.v-no-power, .v-could-not-run, .v-no-cache-seen { color: var(--medium); font-weight: 700; }
table.hits { font-size: .85rem; } .hits th, .hits td { overflow-wrap: normal; } .hits td.wide { min-width: 12rem; overflow-wrap: anywhere; }
section > h3 { margin-top: 1.2rem; }
.matrix td:nth-child(-n+2), .matrix th, .facts td:first-child { overflow-wrap: normal; white-space: nowrap; }
`;
/** Rows of the table of hits; the record has all. */
const HITS_SHOWN_MAX = 200;
/** Values below which a list of figures is no distribution. */
const SAMPLE_MIN = 5;
/** Characters of an answer, for the stated chance of a false alarm. */
const CHANCE_CHARACTERS = 1_000_000;

function contentPolicy(): string {
  const hash = createHash('sha256').update(STYLE).digest('base64');
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`;
}

export function probePage(record: RunRecord): string {
  const safe = escapeAll(record);
  const report = escapeReport(probeReport(record));
  const body = [
    header(safe),
    matrix(safe),
    report.findings.length === 0 ? '' : findingsSection(report),
    hitsSection(safe),
    distributions(safe),
    methods(safe),
    circumstances(safe),
    limits(safe),
  ];
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${contentPolicy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${escapeMarkup(`cofferdam probe: ${safe.verdict}, ${safe.header.endpoint}`)}</title>
<style>${STYLE}</style>
</head>
<body>
${body.filter((section) => section !== '').join('\n')}
</body>
</html>
`;
}

/** Texts with their unseen characters visible; maps and numbers as they are. */
function escapeAll<T>(value: T): T {
  if (typeof value === 'string') return escapeControl(value) as T;
  if (Array.isArray(value)) return value.map(escapeAll) as T;
  if (value instanceof Map)
    return new Map([...value].map(([key, inner]) => [escapeAll(key as unknown), escapeAll(inner as unknown)])) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [escapeControl(key), escapeAll(inner)])) as T;
}

function header(record: RunRecord): string {
  const { header: head, verdict } = record;
  const tone =
    verdict === 'isolated' ? 'clean' : verdict === 'leaks' || verdict === 'starves' ? 'findings' : 'not-checked';
  return `<header><h1>${escapeMarkup(`cofferdam probe · version ${head.tool} · ${head.startedAt}`)}</h1>
<div class="verdict t-${tone}"><p class="words">${escapeMarkup(verdict)}</p><p>${escapeMarkup(headlineOf(record))}</p>
<p class="soft">${escapeMarkup(`${head.endpoint}, model ${head.model}, tenants ${head.tenants.join(', ')}`)}</p></div></header>`;
}

function matrix({ results, header: head }: RunRecord): string {
  if (results.length === 0) return '';
  const rows = results.map((result) => {
    const required = head.required.includes(result.name) ? '' : '<br><span class="soft">not required</span>';
    return `<tr><td><strong>${escapeMarkup(result.name)}</strong>${required}</td><td class="v-${result.verdict}">${result.verdict}</td>
<td class="number">${whole(result.sent)}</td><td class="number">${result.hits}</td><td class="number">${boundText(result.bound)}</td>
<td>${escapeWithCode(result.control)}</td></tr>`;
  });
  return `<section><h2>The experiments</h2>
<p class="soft">Bound: the rate of hits is below it with 95 % confidence. An experiment whose control failed has no power to tell, whatever it saw.</p>
${table(['Experiment', 'Verdict', '#Answers', '#Hits', '#Bound', 'Control'], rows, 'matrix')}
${results.map(evidence).join('\n')}</section>`;
}

function evidence({ name, evidence: sentences }: ExperimentResult): string {
  if (sentences.length === 0) return '';
  return `<h3>${escapeMarkup(name)}: what was seen</h3><ul>${sentences.map((each) => `<li>${escapeWithCode(each)}</li>`).join('')}</ul>`;
}

function hitsSection({ hits }: RunRecord): string {
  if (hits.length === 0) return '';
  const more = hits.length - HITS_SHOWN_MAX;
  const note =
    more > 0 ? `<p class="soft">The first ${HITS_SHOWN_MAX} of ${hits.length}; the record has them all.</p>` : '';
  const head = [
    'Experiment',
    'Answer',
    'Planted by',
    '#Times, ms',
    '#Together',
    '#Prompt',
    'What stood where',
    'Left within 5 s before',
  ];
  return `<section><h2>Hits</h2>
<p class="soft">Times are milliseconds since the run began. Markers are random and were made for this run.</p>
${table(head, hits.slice(0, HITS_SHOWN_MAX).map(hitRow), 'hits')}${note}</section>`;
}

function hitRow(hit: Hit): string {
  const marker = hit.marker === null ? 'a marker that this run never made' : `<code>${escapeMarkup(hit.marker)}</code>`;
  const tokens = hit.promptTokens === null ? '' : `<br>${hit.promptTokens} tokens`;
  const together = hit.overlapMs === null ? 'unknown' : `${hit.overlapMs} ms`;
  return `<tr><td>${escapeMarkup(hit.experiment)}</td><td>${escapeMarkup(`${hit.request} to ${hit.tenant}`)}</td>
<td>${escapeMarkup(`${hit.owner ?? 'nobody of this run'}, ${hit.planted ?? 'unknown request'}`)}</td>
<td class="number">${hit.sentMs} to ${hit.endMs}</td><td class="number">${together}</td><td class="number">${hit.promptCharacters} characters${tokens}</td>
<td class="wide">${hit.length} characters of ${marker} from its ${hit.markerOffset} on, at ${hit.offset} of <code>${escapeMarkup(hit.place)}</code></td>
<td>${escapeMarkup(hit.leftBefore.join(', ') || 'none')}</td></tr>`;
}

function distributions({ traffic, results }: RunRecord): string {
  const times = timesPlot(
    traffic
      .filter(({ experiment }) => experiment !== 'learn')
      .map(({ experiment, firstByte }) => ({ name: experiment, bins: firstByte })),
  );
  const own = results.flatMap(({ name, figures }) => {
    const lists = Object.entries(figures ?? {}).filter(
      (entry): entry is [string, readonly number[]] => typeof entry[1] === 'object' && entry[1].length >= SAMPLE_MIN,
    );
    // Lists in one unit stand over one axis: what differs between them is what the experiment is about.
    return [...groupBy(lists, ([figure]) => unitOf(figure))].map(
      ([unit, group]) => `<h3>${escapeMarkup(name)}</h3>${samplesPlot(new Map(group), unit)}`,
    );
  });
  if (times === '' && own.length === 0) return '';
  return `<section><h2>Distributions</h2>
${times === '' ? '' : `<h3>Time to the first byte of an answer, by experiment</h3><p class="soft">Logarithmic; the upright line is the median.</p>${times}`}
${own.join('\n')}</section>`;
}

/** `hitMs` is in milliseconds, `lengths` in tokens. */
function unitOf(figure: string): string {
  if (figure.endsWith('Ms')) return 'ms';
  return /(?:lengths|Tokens)$/i.test(figure) ? 'tokens' : '';
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
  return groups;
}

function methods({ plan }: RunRecord): string {
  if (plan.length === 0) return '';
  const articles = plan.map(
    ({ name, method, unfit, plan: { requests, tokens } }) => `<article><h3>${escapeMarkup(name)}</h3><dl>
<dt>Does</dt><dd>${escapeWithCode(method.does)}</dd><dt>Control</dt><dd>${escapeWithCode(method.control)}</dd>
<dt>Tells</dt><dd>${escapeWithCode(method.tells)}</dd><dt>Limits</dt><dd>${escapeWithCode(method.limits)}</dd>
<dt>Planned</dt><dd>${unfit === null ? `at most ${whole(requests)} requests and ${whole(tokens)} tokens` : `not run: ${escapeWithCode(unfit)}`}</dd></dl></article>`,
  );
  return `<section><h2>Method</h2>${articles.join('\n')}</section>`;
}

function circumstances({
  header: head,
  knowledge,
  requests,
  tokens,
  traffic,
  runs,
  stopped,
  whole: ended,
}: RunRecord): string {
  const rows: [string, string][] = [
    ['Endpoint', head.endpoint],
    ['Model, route', `${head.model}, ${head.route}`],
    [
      'Context advertised',
      `${knowledge?.advertised ?? 'unknown'}${knowledge?.advertisedFrom == null ? '' : ` (${knowledge.advertisedFrom})`}`,
    ],
    ['Pool, longest prompt taken', `${knowledge?.pool ?? 'unknown'}, ${knowledge?.acceptLimit ?? 'unknown'}`],
    ['Engine', `${knowledge?.engine ?? 'unknown'} ${knowledge?.engineVersion ?? ''}`.trim()],
    [
      'Counts prompts, streams',
      knowledge === null ? 'unknown' : `${knowledge.counts ? 'yes' : 'no'}, ${knowledge.streams ? 'yes' : 'no'}`,
    ],
    [
      'Sent',
      `${whole(requests)} requests, ${whole(tokens)} tokens as the endpoint counted them, in ${runs} ${runs === 1 ? 'run' : 'runs'}`,
    ],
    [
      'Answers',
      traffic
        .map(
          (each) => `${each.experiment}: ${[...each.outcomes].map(([kind, count]) => `${count} ${kind}`).join(', ')}`,
        )
        .join('; '),
    ],
    ['Seed, run', `${head.seed}, ${head.runId}`],
    ['Ended', stopped === null ? (ended ? 'by itself' : 'never: the record has no end') : `early, since ${stopped}`],
  ];
  const cells = rows.map(([name, text]) => `<tr><td>${escapeMarkup(name)}</td><td>${escapeMarkup(text)}</td></tr>`);
  return `<section><h2>Circumstances</h2>${table(['What', 'How it was'], cells, 'facts')}</section>`;
}

function limits({ header: head }: RunRecord): string {
  const chance = fragmentChanceBound(CHANCE_CHARACTERS);
  return `<section><h2>What this can not tell</h2>
<p><strong>Isolated</strong> means: nothing was seen, with controls that worked, in this many answers. A leak that is rarer than the bound, or that needs an event which did not happen here (a node that restarts, a pool under another load), is not seen. What a model reads without repeating it leaves no marker.</p>
<p>A fragment counts from 12 characters on. The chance that text which knows nothing of a marker holds such a piece of it by accident is below ${chance.toExponential(1)} per marker and million characters.</p>
<p>The rate of hits counts as bounded when it is below ${boundText(head.bound)} with 95 % confidence (exact, Clopper and Pearson). Prompts and answers are not on this page, nor any key.</p></section>`;
}

/** A name that begins with `#` is a column of numbers. */
function table(head: readonly string[], rows: readonly string[], name: string = ''): string {
  const cells = head.map((each) =>
    each.startsWith('#') ? `<th class="number">${each.slice(1)}</th>` : `<th>${each}</th>`,
  );
  return `<table${name === '' ? '' : ` class="${name}"`}><thead><tr>${cells.join('')}</tr></thead><tbody>\n${rows.join('\n')}\n</tbody></table>`;
}
