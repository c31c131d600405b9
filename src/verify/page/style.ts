/** The explorer's style. Each request has a letter, a colour and a pattern; every state of a page has its word and its border. */
export const PAGE_STYLE: string = `
:root {
  color-scheme: light dark;
  --page: #f6f7f8; --sheet: #ffffff; --ink: #16191d; --quiet: #58616b; --line: #e2e5e9; --line-strong: #c3c9d0;
  --link: #1456b0; --a: #2463c0; --b: #b04a00; --c: #1a7a4a; --d: #8a3aa8;
  --wrong: #a8123a; --wrong-sheet: #fdf1f4; --right: #1a6b3c; --alarm: #8f0f31; --alarm-ink: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #101316; --sheet: #171b1f; --ink: #e8ebee; --quiet: #9ba5b0; --line: #272d33; --line-strong: #434c55;
    --link: #85b7ff; --a: #5e9bf2; --b: #f0964a; --c: #5cc08a; --d: #cc8be6;
    --wrong: #ff8fa6; --wrong-sheet: #2a1920; --right: #78c894; --alarm: #b3163f; --alarm-ink: #ffffff;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html { background: var(--page); color: var(--ink); font: 14px/1.45 Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums lining-nums; -webkit-text-size-adjust: 100%; }
body { margin: 0; }
.width { max-width: 1480px; margin: 0 auto; padding: 0 24px; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px; }
h1, h2, h3, p, ul, ol, table { margin: 0; }
ul, ol { padding: 0; list-style: none; }
h1 { font-size: 20px; font-weight: 650; letter-spacing: -0.01em; }
h2 { font-size: 15px; font-weight: 650; margin-bottom: 8px; }
h3 { font-size: 12.5px; font-weight: 600; color: var(--quiet); margin: 12px 0 6px; }
h2 + h3 { margin-top: 0; }
header { padding-top: 18px !important; padding-bottom: 10px !important; }
header p { color: var(--quiet); max-width: 130ch; overflow-wrap: anywhere; }
.brand { font-size: 12.5px; font-weight: 600; }
.pick { margin: 10px 0 4px; display: flex; gap: 8px; align-items: center; }
select { max-width: 100%; min-width: 0; }
select, button { font: inherit; color: var(--ink); background: var(--sheet); border: 1px solid var(--line-strong); border-radius: 6px; padding: 4px 12px; }
button { cursor: pointer; }
button:hover:not(:disabled) { border-color: var(--quiet); }
button:disabled { color: var(--quiet); border-color: var(--line); cursor: default; }
nav { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; position: sticky; top: 0; z-index: 1; background: var(--page); padding-top: 8px !important; padding-bottom: 8px !important; }
nav strong { min-width: 9em; text-align: center; }
nav .gap { flex: 1; }
#last { font-size: 16px; font-weight: 600; padding: 4px 0; min-height: 32px; }
#note { color: var(--quiet); }
#note:empty { display: none; }
#broken { background: var(--alarm); color: var(--alarm-ink); border-radius: 8px; padding: 10px 14px; margin: 6px 0; font-weight: 600; }
main { display: grid; grid-template-columns: minmax(240px, 3fr) minmax(0, 5fr) minmax(260px, 3.4fr); gap: 16px; padding-top: 10px !important; padding-bottom: 20px !important; align-items: start; }
.middle, .side { display: grid; gap: 16px; grid-template-columns: minmax(0, 1fr); }
.panel { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; min-width: 0; }
.panel.steps { position: sticky; top: 52px; }
#steps { position: relative; max-height: max(300px, calc(100vh - 330px)); overflow-y: auto; }
.step { display: grid; grid-template-columns: 2.2em 1fr; width: 100%; text-align: left; border: 0; background: none; padding: 4px 6px; border-radius: 4px; }
.step .number { color: var(--quiet); }
.ahead .step { color: var(--quiet); }
.step[aria-current] { background: var(--ink); color: var(--sheet); }
.step[aria-current] .number { color: inherit; }
.step:focus-visible { outline-offset: -2px; }

.pool { display: flex; flex-wrap: wrap; gap: 10px; }
.page { flex: 1 1 112px; max-width: 140px; min-width: 0; border: 2px solid var(--own); border-radius: 8px; padding: 0 8px 6px; display: grid; justify-items: center; overflow: hidden; }
.band { width: calc(100% + 16px); height: 16px; border-bottom: 1px solid var(--line-strong); }
.page .number, .page .state, .content { font-size: 12.5px; }
.page .number { color: var(--quiet); margin-top: 4px; }
.letter { font-size: 26px; line-height: 1.2; font-weight: 700; }
.page.free { border: 2px dashed var(--line-strong); }
.page.draining { border-style: dashed; }
.page.draining .state { font-style: italic; font-weight: 600; }
.page.sealed { border: 5px double var(--line-strong); }
.content { display: flex; gap: 5px; align-items: center; margin-top: 5px; padding-top: 5px; border-top: 1px solid var(--line); width: 100%; justify-content: center; }
.content.none { color: var(--quiet); }
.content.stale, .content.torn, .content.spoilt { color: var(--wrong); background: var(--wrong-sheet); font-weight: 600; }
.reader { font-size: 12.5px; text-align: center; }
.reader.foreign { color: var(--wrong); font-weight: 650; }
.swatch { display: inline-block; width: 14px; height: 14px; border-radius: 3px; border: 1px solid var(--line-strong); flex: none; }
.content.none .swatch, .content.sealed .swatch, .content.spoilt .swatch { display: none; }
th .swatch { margin-right: 6px; vertical-align: -2px; }
.of-A { --own: var(--a); } .of-B { --own: var(--b); } .of-C { --own: var(--c); } .of-D { --own: var(--d); } .of-none { --own: var(--line-strong); }
.of-A > .band, .swatch.of-A { background: var(--a); }
.of-B > .band, .swatch.of-B { background: repeating-linear-gradient(135deg, var(--b) 0 4px, transparent 4px 7px); }
.of-C > .band, .swatch.of-C { background: radial-gradient(var(--c) 2px, transparent 2.4px) 0 0 / 7px 7px; }
.of-D > .band, .swatch.of-D { background: repeating-linear-gradient(90deg, var(--d) 0 2px, transparent 2px 6px); }
.legend { color: var(--quiet); font-size: 13px; margin-top: 10px; }

.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; font-weight: 400; padding: 5px 14px 5px 0; border-top: 1px solid var(--line); white-space: nowrap; }
thead th { border-top: 0; color: var(--quiet); font-size: 12.5px; padding-top: 0; }
tbody th { font-weight: 650; }
tr.idle td, tr.idle th { color: var(--quiet); }
.flight { display: grid; grid-template-columns: 6em 10.5em minmax(0, 1fr) auto; gap: 4px 10px; align-items: center; padding: 6px 0; border-top: 1px solid var(--line); }
.flight:first-child { border-top: 0; }
.flight .kind { color: var(--quiet); font-size: 12.5px; }
.flight .arrow { font-weight: 600; white-space: nowrap; }
.buttons { display: flex; flex-wrap: wrap; gap: 6px; }
.choices { display: grid; gap: 6px; }
.choices .choice { width: 100%; text-align: left; }
.choice.world { border-style: dashed; }
.empty { color: var(--quiet); }
.spent { color: var(--quiet); text-decoration: line-through; }
#properties > li, #sometimes > li { display: grid; grid-template-columns: 6.2em minmax(0, 1fr); gap: 0 8px; padding: 3px 0; border-top: 1px solid var(--line); }
#properties > li > span:last-child { grid-column: 2; color: var(--wrong); }
#properties > li > span:last-child:empty { display: none; }
#properties .name, #sometimes .name { overflow-wrap: anywhere; }
#properties b, #sometimes b { font-weight: 600; white-space: nowrap; }
.right b { color: var(--right); }
.wrong b, .wrong .name { color: var(--wrong) !important; font-weight: 650; }
.seen b { color: var(--ink); }
.unseen, .unseen b { color: var(--quiet) !important; font-weight: 400; }
#settled { padding-bottom: 6px; }
#pages-words > li { padding: 3px 0; }
summary { cursor: pointer; color: var(--link); margin-top: 8px; }
pre { overflow-x: auto; font: 12px/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; margin: 8px 0 0; }
footer { color: var(--quiet); padding-bottom: 28px !important; }

@media (max-width: 1180px) {
  main { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
  .panel.steps { grid-column: 1 / -1; position: static; }
  #steps { position: relative; max-height: 220px; }
}
@media (max-width: 760px) {
  .width { padding: 0 12px; }
  main { grid-template-columns: minmax(0, 1fr); }
  .page { flex-basis: calc(50% - 5px); max-width: calc(50% - 5px); }
  .flight { grid-template-columns: minmax(0, 1fr) auto; }
  .flight .words, .flight .buttons { grid-column: 1 / -1; }
  nav { position: static; }
  nav .gap { display: none; }
}
@media (forced-colors: active) {
  .band, .swatch { forced-color-adjust: none; }
}
`;
