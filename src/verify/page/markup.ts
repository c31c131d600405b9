/** The explorer's page: style, skeleton, data and code in one document that fetches nothing. */
import { createHash } from 'node:crypto';
import { bundle } from './bundle.js';
import { PAGE_STYLE } from './style.js';
import type { PageData } from './walk.js';

/** All of a page, code and data. More than this is not a page that one sends to a colleague. */
export const PAGE_BYTES_MAX = 600_000;

/** The page's code: the compiled model, the machines that it steps, and what shows them. */
export function pageScript(): string {
  return bundle(new URL('./client/main.js', import.meta.url).href);
}

/** The document. Its policy lets run exactly its own script, apply its own style, and load nothing. */
export function buildPage(data: PageData): string {
  const script = pageScript();
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${policyOf(script)}">
<title>Cofferdam: verify</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>${PAGE_STYLE}</style>
</head>
<body>
${BODY}
<script type="application/json" id="data">${jsonInMarkup(data)}</script>
<script>${script}</script>
</body>
</html>
`;
}

/** JSON that cannot end the element it stands in, whatever its strings say. */
export function jsonInMarkup(data: unknown): string {
  return JSON.stringify(data).replaceAll(/[<>&\u2028\u2029]/g, (sign) => {
    return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

function policyOf(script: string): string {
  const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  return [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(PAGE_STYLE)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

const BODY = `<header class="width">
<p class="brand">cofferdam verify</p>
<h1 id="title"></h1>
<p id="words"></p>
<div class="pick"><label for="world">World</label> <select id="world"></select></div>
<p id="found"></p>
</header>
<noscript><p class="width">This page runs the protocol itself and needs its script.</p></noscript>
<nav class="width" aria-label="Steps">
<button id="first" type="button" aria-keyshortcuts="Home">Beginning</button>
<button id="back" type="button" aria-keyshortcuts="ArrowLeft">← Back</button>
<strong id="place"></strong>
<button id="forward" type="button" aria-keyshortcuts="ArrowRight">Forward →</button>
<button id="end" type="button" aria-keyshortcuts="End">End</button>
<span class="gap"></span>
<button id="counterexample" type="button">Counterexample</button>
<button id="clear" type="button">From nothing</button>
<button id="settle" type="button">Can it settle?</button>
</nav>
<div class="width" id="now" role="status"><p id="last"></p><p id="note"></p></div>
<div class="width"><p id="broken" role="alert" hidden></p></div>
<main class="width" id="state">
<section class="panel steps" aria-labelledby="h-steps">
<h2 id="h-steps">Steps</h2>
<ol id="steps" start="0"></ol>
</section>
<div class="middle">
<section class="panel" aria-labelledby="h-pools">
<h2 id="h-pools">Pools</h2>
<h3>Prefill</h3>
<ul id="prefill" class="pool"></ul>
<h3>Decode</h3>
<ul id="decode" class="pool"></ul>
<p class="legend">A capital holds the page, a small letter drains it, · is free, # is sealed. Below it: whose content lies there. Each use of a page has a number, its epoch.</p>
</section>
<section class="panel" aria-labelledby="h-slots">
<h2 id="h-slots">Requests</h2>
<div class="scroll"><table><thead><tr><th scope="col">request</th><th scope="col">tenant</th><th scope="col">gateway</th><th scope="col">prefill</th><th scope="col">decode</th><th scope="col">client got</th></tr></thead><tbody id="slots"></tbody></table></div>
</section>
<section class="panel" aria-labelledby="h-flights">
<h2 id="h-flights">In flight</h2>
<ul id="flights"></ul>
</section>
<section class="panel" aria-labelledby="h-pages">
<h2 id="h-pages">What became of decode’s pages on this way</h2>
<ul id="pages-words"></ul>
<details><summary>As a sequence diagram</summary><pre id="diagram" tabindex="0"></pre></details>
</section>
</div>
<div class="side">
<section class="panel" aria-labelledby="h-own">
<h2 id="h-own">The system may</h2>
<ul id="choices-own" class="choices"></ul>
</section>
<section class="panel" aria-labelledby="h-world">
<h2 id="h-world">The world may</h2>
<ul id="choices-world" class="choices"></ul>
<h3>Troubles in store</h3>
<ul id="troubles"></ul>
</section>
<section class="panel" aria-labelledby="h-properties">
<h2 id="h-properties">Properties</h2>
<p id="settled"></p>
<ul id="properties"></ul>
<h3>Seen sometimes</h3>
<ul id="sometimes"></ul>
</section>
</div>
</main>
<footer class="width"><p>Keys: ← → step, Home and End, ↑ ↓ among the actions, Enter takes one. The address holds the way: a copy of it shows the same state. What runs here is the compiled code of src/handoff, the functions that the engine runs.</p></footer>`;
