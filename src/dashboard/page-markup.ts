/** The page before its first numbers. Nothing in it comes from outside: all of that goes in as text, by the page's script. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M2 1h3v14H2zM11 1h3v14h-3z' fill='%235b87c9'/%3E%3C/svg%3E";

export function pageMarkup(style: string, script: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Cofferdam: operators</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="${ICON}">
<style>${style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the numbers</a>
<header>
<div class="width">
<h1>Cofferdam</h1>
<p id="engine"></p>
<div id="live" class="live"><span id="live-kind" role="status">Waiting</span><span id="live-words">for the first numbers</span></div>
<button id="pause" type="button" aria-pressed="false">Pause</button>
</div>
</header>
<div id="alarm" role="alert" hidden><div class="width"><strong>Tenants are not kept apart here.</strong><span id="alarm-words"></span></div></div>
<div id="stale" role="alert" hidden><div class="width" id="stale-words"></div></div>
<noscript><div class="width">This page needs its script. The same numbers are at /metrics and /findings.</div></noscript>
<main id="main" class="width" tabindex="-1">
${figures()}
${capacity()}
${tenants()}
${findings()}
<div class="left">
${pools()}
${latency()}
${refusals()}
</div>
<div class="right">
${guards()}
</div>
</main>
<footer><div class="width"><span>The same as data:</span><ul><li><a href="metrics">metrics</a></li><li><a href="findings">findings</a></li><li><a href="state">state</a></li><li><a href="healthz">health</a></li></ul></div></footer>
<script>${script}</script>
</body>
</html>
`;
}

function figures(): string {
  const names: readonly (readonly [string, string])[] = [
    ['limit', 'Effective limit'],
    ['running', 'Running'],
    ['waiting', 'Waiting'],
    ['admitted', 'Admitted'],
    ['refused', 'Refused'],
    ['shielded', 'Shielded'],
    ['findings', 'Findings'],
  ];
  const figure = ([id, name]: readonly [string, string]): string =>
    `<div class="figure" id="figure-${id}"><dt>${name}</dt><dd id="figure-${id}-value">–</dd><dd id="figure-${id}-words"></dd></div>`;
  return `<section aria-label="At a glance"><dl id="figures">${names.map(figure).join('')}</dl></section>`;
}

interface TableParts {
  readonly id: string;
  /** What the table holds and in which unit; read out with it. */
  readonly caption: string;
  /** `word`: to the left; `with-bar`: a bar with its number; else a number. */
  readonly columns: readonly (readonly [name: string, kind?: 'word' | 'with-bar'])[];
  readonly foot?: string;
}

/** What may be wider than the screen scrolls by itself, and by keyboard. */
function table({ id, caption, columns, foot }: TableParts): string {
  const head = columns.map(([name, kind]) => `<th scope="col"${kind ? ` class="${kind}"` : ''}>${name}</th>`);
  return `<div class="scroll" role="region" aria-labelledby="${id}-caption" tabindex="0"><table>
<caption id="${id}-caption"><span>${caption}</span></caption>
<thead><tr>${head.join('')}</tr></thead>
<tbody id="${id}-rows"></tbody>${foot === undefined ? '' : `<tfoot id="${foot}"></tfoot>`}
</table></div>`;
}

function panel(id: string, title: string, inner: string): string {
  return `<section id="${id}" class="panel" aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>${inner}</section>`;
}

const LEGEND =
  '<ul class="legend"><li><span class="leased"></span>leased</li><li><span class="draining"></span>draining</li><li><span class="cached"></span>cached</li></ul>';

function capacity(): string {
  const rows = table({
    id: 'capacity',
    caption: 'What each node says it takes, and what it holds; tokens',
    columns: [
      ['Node'],
      ['Advertised context'],
      ['Real pool'],
      ['Difference'],
      ['Pool against context', 'with-bar'],
      ['Role', 'word'],
      ['Read from', 'word'],
    ],
  });
  return panel('capacity', 'Advertised against real', `<p id="capacity-words" class="lead"></p>${rows}`);
}

function tenants(): string {
  const rows = table({
    id: 'tenants',
    caption: 'Open requests, and tokens of the decode pool in whole pages; used is leased and draining',
    columns: [
      ['Tenant'],
      ['Running'],
      ['Waiting'],
      ['Used'],
      ['Leased'],
      ['Draining'],
      ['Cached'],
      ['Of the pool', 'with-bar'],
    ],
    foot: 'tenants-sum',
  });
  return panel('tenants', 'Tenants in the decode pool', `${rows}${LEGEND}<p id="tenants-left"></p>`);
}

function pools(): string {
  const rows = table({
    id: 'pools',
    caption: 'Pages by state',
    columns: [['Pool'], ['Pages'], ['Free'], ['Leased'], ['Draining'], ['Cached'], ['Not free', 'with-bar']],
  });
  return panel('pools', 'Pages', rows);
}

function latency(): string {
  const rows = table({
    id: 'latency',
    caption: 'From a request’s arrival; percentiles of the latest 1,024, count since the start',
    columns: [['Time'], ['p50'], ['p95'], ['p99'], ['Count']],
  });
  return panel('latency', 'Latency', rows);
}

function refusals(): string {
  const rows = table({
    id: 'refusals',
    caption: 'Requests that ended with an error, by reason; docs/ERRORS.md explains each',
    columns: [['Reason'], ['HTTP'], ['Count']],
  });
  return panel('refusals', 'Refusals', rows);
}

function guards(): string {
  const rows = table({
    id: 'guards',
    caption: 'What stops a fault, in the order in which a request meets it',
    columns: [['Guard'], ['State', 'word'], ['Stopped']],
  });
  return panel('guards', 'Guards', `${rows}<p id="checks"></p>`);
}

function findings(): string {
  return panel(
    'findings',
    'Findings, worst first',
    '<p id="findings-words"></p><ul id="findings-rows"></ul><p id="findings-left"></p>',
  );
}
