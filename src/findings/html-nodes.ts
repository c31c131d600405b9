import { escapeMarkup } from './markup.js';
import { type Report, type ReportNode, ratioText } from './report.js';

/** Width and height of the bar, in CSS pixels. */
const BAR_WIDTH = 160;
const BAR_HEIGHT = 12;

/** The two numbers of every node side by side, each with a bar. */
export function nodesSection({ nodes }: Report): string {
  if (nodes.length === 0) return '';
  const head =
    '<tr><th>Node</th><th class="number">Context offered</th><th class="number">Pool holds</th>' +
    '<th class="number">Longest prompt taken</th><th class="number">Ratio</th><th class="bar">Pool against context</th></tr>';
  return `<section><h2>The two numbers</h2>
<p class="soft">Tokens. Where the pool is smaller than the context offered (ratio below 1), a prompt that is let in may not fit.</p>
<table><thead>${head}</thead><tbody>
${nodes.map(nodeRow).join('\n')}
</tbody></table></section>`;
}

function nodeRow(node: ReportNode): string {
  const engine = `${node.engine ?? 'engine unknown'} ${node.version ?? ''}`.trim();
  const role = node.role === 'unknown' ? 'role unknown' : node.role;
  const short = node.ratio !== null && node.ratio < 1 ? ' short' : '';
  return `<tr><td><strong>${escapeMarkup(node.name)}</strong><br><span class="soft">${escapeMarkup(engine)}, ${role}</span></td>
<td class="number">${numberText(node.advertised)}</td><td class="number${short}">${numberText(node.pool)}</td>
<td class="number">${numberText(node.acceptLimit)}</td><td class="number${short}">${ratioText(node.ratio)}</td>
<td class="bar">${bar(node)}</td></tr>`;
}

/** `1,048,576`; the table of a terminal and the JSON have plain digits. */
function numberText(value: number | null): string {
  return value === null ? '<span class="soft">unknown</span>' : String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** The pool as a bar, the context as a mark; what is missing between them is tinted. Empty when one of them is not known. */
function bar({ pool, advertised }: ReportNode): string {
  if (pool === null || advertised === null || Math.max(pool, advertised) === 0) return '';
  const scale = BAR_WIDTH / Math.max(pool, advertised);
  const filled = Math.round(pool * scale);
  const mark = Math.min(BAR_WIDTH - 2, Math.round(advertised * scale));
  const track = pool < advertised ? 'track' : 'spare';
  return (
    `<svg width="${BAR_WIDTH}" height="${BAR_HEIGHT + 4}" role="img" aria-label="pool ${pool} of context ${advertised}">` +
    `<rect class="${track}" x="0.5" y="2.5" width="${BAR_WIDTH - 1}" height="${BAR_HEIGHT - 1}"/>` +
    `<rect class="fill" x="0" y="2" width="${filled}" height="${BAR_HEIGHT}"/>` +
    `<rect class="mark" x="${mark}" y="0" width="2" height="${BAR_HEIGHT + 4}"/></svg>`
  );
}

/** Where each number came from. */
export function sourcesSection({ nodes }: Report): string {
  const rows = nodes.flatMap(({ name, sources }) =>
    sources.map(({ field, value, source, line }) => {
      const place = `${source}${line === undefined ? '' : `:${line}`}`;
      return `<tr><td>${escapeMarkup(name)}</td><td>${escapeMarkup(field)}</td><td>${escapeMarkup(value)}</td><td><code>${escapeMarkup(place)}</code></td></tr>`;
    }),
  );
  if (rows.length === 0) return '';
  return `<section><h2>Where each number came from</h2>
<table><thead><tr><th>Node</th><th>What</th><th>Value</th><th>Read from</th></tr></thead><tbody>
${rows.join('\n')}
</tbody></table></section>`;
}
