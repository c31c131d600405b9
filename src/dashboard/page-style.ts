/** The page's style. Colour never says anything alone: every state has its word, and draining is hatched. */
export const PAGE_STYLE: string = `
:root {
  color-scheme: light dark;
  --page: #f6f7f8; --sheet: #ffffff; --ink: #16191d; --quiet: #58616b; --line: #e2e5e9; --line-strong: #c3c9d0;
  --link: #1456b0; --leased: #2463c0; --draining: #b96500; --cached: #7b8794; --track: #e9ecef;
  --wrong: #a8123a; --wrong-sheet: #fdf1f4; --warn: #855000; --warn-sheet: #fdf5e6; --right: #1a6b3c;
  --alarm: #8f0f31; --alarm-ink: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #101316; --sheet: #171b1f; --ink: #e8ebee; --quiet: #9ba5b0; --line: #272d33; --line-strong: #434c55;
    --link: #85b7ff; --leased: #5e9bf2; --draining: #e59b3a; --cached: #77838f; --track: #262c32;
    --wrong: #ff8fa6; --wrong-sheet: #2a1920; --warn: #f0b660; --warn-sheet: #29211a; --right: #78c894;
    --alarm: #b3163f; --alarm-ink: #ffffff;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html { background: var(--page); color: var(--ink); font: 14px/1.45 Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums lining-nums; -webkit-text-size-adjust: 100%; }
body { margin: 0; }
.width { max-width: 1280px; margin: 0 auto; padding: 0 24px; }
a { color: var(--link); text-underline-offset: 2px; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px; }
main:focus { outline: none; }
.skip { position: absolute; left: 12px; top: -60px; padding: 8px 12px; background: var(--sheet); border: 1px solid var(--line-strong); z-index: 2; }
.skip:focus { top: 8px; }
h1, h2, p, dl, dd, ul, table { margin: 0; }
.hidden-words { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

header .width { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 16px; padding-top: 20px; padding-bottom: 16px; }
h1 { font-size: 18px; font-weight: 650; letter-spacing: -0.01em; }
#engine { color: var(--quiet); flex: 1 1 240px; }
.live { display: flex; align-items: center; gap: 8px; white-space: nowrap; }
.live::before { content: ""; width: 9px; height: 9px; border-radius: 50%; background: var(--right); }
.live.paused::before { background: none; border: 2px solid var(--quiet); }
.live.stale::before { background: var(--wrong); border-radius: 0; }
#live-kind { font-weight: 600; }
.live.live #live-kind { color: var(--right); }
.live.stale #live-kind { color: var(--wrong); }
#live-words { color: var(--quiet); }
button { font: inherit; color: var(--ink); background: var(--sheet); border: 1px solid var(--line-strong); border-radius: 6px; padding: 3px 12px; cursor: pointer; }
button:hover { border-color: var(--quiet); }
button[aria-pressed="true"] { background: var(--ink); color: var(--sheet); border-color: var(--ink); }

#alarm, #stale { margin-bottom: 18px; }
#alarm { background: var(--alarm); color: var(--alarm-ink); }
#alarm .width { padding-top: 12px; padding-bottom: 12px; }
#alarm strong { display: block; font-size: 16px; }
#stale { background: var(--warn-sheet); color: var(--warn); border-block: 1px solid currentColor; }
#stale .width { padding-top: 8px; padding-bottom: 8px; font-weight: 600; }

#figures { display: grid; grid-template-columns: 1.7fr repeat(6, 1fr); background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.figure { padding: 14px 18px 16px; border-left: 1px solid var(--line); min-width: 0; }
.figure:first-child { border-left: 0; }
.figure dt { color: var(--quiet); }
.figure dd:nth-of-type(1) { font-size: 26px; line-height: 1.25; font-weight: 600; letter-spacing: -0.02em; }
.figure dd:nth-of-type(2) { color: var(--quiet); font-size: 13px; overflow-wrap: anywhere; }
.figure.wrong dd:nth-of-type(1) { color: var(--wrong); }

main { display: grid; grid-template-columns: repeat(12, minmax(0, 1fr)); gap: 20px; padding-bottom: 28px !important; }
main > * { grid-column: 1 / -1; }
main > .left { grid-column: span 7; }
main > .right { grid-column: span 5; }
.left, .right { display: grid; gap: 20px; align-content: start; grid-template-columns: minmax(0, 1fr); }
.panel { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; padding: 16px 18px 14px; min-width: 0; }
h2 { font-size: 15px; font-weight: 650; }
.panel > p { color: var(--quiet); max-width: 128ch; margin-top: 2px; }
.panel > p:empty { display: none; }
.panel > p.lead { color: var(--ink); max-width: none; text-wrap: pretty; }

.scroll { overflow-x: auto; margin-top: 10px; }
table { width: 100%; border-collapse: collapse; }
caption { text-align: left; color: var(--quiet); padding-bottom: 6px; }
caption span { position: sticky; left: 0; display: inline-block; max-width: min(100%, calc(100vw - 64px)); }
th, td { text-align: right; font-weight: 400; padding: 6px 0 6px 18px; border-top: 1px solid var(--line); white-space: nowrap; vertical-align: baseline; }
th:first-child { text-align: left; padding-left: 0; }
thead th { border-top: 0; color: var(--quiet); font-size: 12.5px; padding-top: 0; }
tbody th { font-weight: 550; }
tfoot th, tfoot td { border-top: 1px solid var(--line-strong); font-weight: 600; }
.word, th.word, .with-bar, th.with-bar { text-align: left; }
.zero { color: var(--quiet); }
td.wrong { color: var(--wrong); font-weight: 600; }
.fits { color: var(--right); }
td.empty { text-align: left; padding-left: 0; color: var(--quiet); }

.with-bar { width: 30%; min-width: 180px; }
td.with-bar { display: table-cell; }
.bar { display: inline-flex; width: calc(100% - 64px); height: 10px; margin-right: 10px; background: var(--track); border-radius: 2px; overflow: hidden; vertical-align: -1px; }
.bar > span { flex: none; }
.holds, .leased { background: var(--leased); }
.draining { background: repeating-linear-gradient(135deg, var(--draining) 0 3px, transparent 3px 5px); }
.cached { background: radial-gradient(var(--cached) 1.3px, transparent 1.6px) 0 0 / 4px 5px; }
.lacks { background: repeating-linear-gradient(135deg, var(--wrong) 0 1.5px, transparent 1.5px 5px); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; color: var(--quiet); font-size: 13px; margin-top: 8px; padding: 0; list-style: none; }
.legend span { display: inline-block; width: 18px; height: 9px; margin-right: 6px; background-color: var(--track); border-radius: 2px; }
.legend span.leased { background-color: var(--leased); }

#findings-rows { list-style: none; padding: 0; margin-top: 8px; }
#findings-rows > li { border-top: 1px solid var(--line); }
summary { display: grid; grid-template-columns: 74px minmax(0, 1fr) auto; gap: 0 12px; padding: 9px 0; cursor: pointer; align-items: baseline; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary .title { font-weight: 550; overflow-wrap: anywhere; }
summary .title::after { content: " ▸"; color: var(--quiet); }
details[open] summary .title::after { content: " ▾"; }
summary .place { grid-column: 2; grid-row: 2; color: var(--quiet); font-size: 13px; overflow-wrap: anywhere; }
summary .times { color: var(--quiet); white-space: nowrap; }
.severity { justify-self: start; font-size: 12.5px; font-weight: 600; padding: 0 8px; border-radius: 4px; border: 1px solid currentColor; }
.severity.critical { background: var(--alarm); border-color: var(--alarm); color: var(--alarm-ink); }
.severity.high { color: var(--wrong); background: var(--wrong-sheet); }
.severity.medium { color: var(--warn); background: var(--warn-sheet); }
.severity.low, .severity.info { color: var(--quiet); }
details dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 14px; padding: 2px 0 14px 86px; }
details dt { color: var(--quiet); }
details dd { overflow-wrap: anywhere; max-width: 84ch; }

footer .width { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--quiet); padding-bottom: 32px; }
footer ul { display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 0; list-style: none; }

@media (max-width: 1100px) {
  #figures { grid-template-columns: repeat(4, 1fr); }
  .figure:first-child { grid-column: span 2; }
  .figure { border-top: 1px solid var(--line); margin-top: -1px; }
  .figure:nth-child(4) { border-left: 0; }
  main > .left, main > .right { grid-column: 1 / -1; }
}
@media (max-width: 560px) {
  .width { padding: 0 14px; }
  #figures { grid-template-columns: repeat(2, 1fr); }
  .figure { padding: 10px 14px 12px; }
  .figure:nth-child(n) { border-left: 1px solid var(--line); }
  .figure:nth-child(2n), .figure:first-child { border-left: 0; }
  .figure dd:nth-of-type(1) { font-size: 22px; }
  main, .left, .right { gap: 14px; }
  .panel { padding: 14px; }
  th, td { padding-left: 14px; }
  thead th { white-space: normal; vertical-align: bottom; }
  th:first-child { position: sticky; left: 0; background: var(--sheet); padding-right: 6px; }
  .with-bar { min-width: 170px; }
  summary { grid-template-columns: 1fr auto; gap: 2px 10px; }
  summary .title, summary .place { grid-column: 1 / -1; grid-row: auto; }
  summary .times { grid-column: 2; grid-row: 1; }
  details dl { padding-left: 0; grid-template-columns: 1fr; gap: 0; }
  details dd { margin-bottom: 6px; }
}
@media (prefers-reduced-motion: no-preference) {
  .bar > span { transition: width 300ms ease-out; }
}
@media (forced-colors: active) {
  .bar { border: 1px solid CanvasText; }
  .bar > span, .legend span { forced-color-adjust: none; }
}
`;
