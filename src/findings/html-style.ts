/** The style of the HTML report: light, dark, and paper. Nothing in it comes from a report. */
export const HTML_STYLE = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d5dae0; --page: #ffffff; --box: #f5f7f9;
  --critical: #a40e26; --high: #c2410c; --medium: #8a6100; --low: #0a5c8a; --info: #57606a; --good: #18693a; --bar: #2f6fb0; --missing: #f3c6c6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --soft: #9aa4af; --line: #363d46; --page: #14181d; --box: #1d232a;
  --critical: #ff7b8a; --high: #ff9d66; --medium: #e5b94f; --low: #6cbcec; --info: #9aa4af; --good: #6cd396; --bar: #5c9ad8; --missing: #6d2f35; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --page: #fff; --box: #fff;
  --critical: #a40e26; --high: #b03a08; --medium: #6e4d00; --low: #0a4a70; --info: #444; --good: #14562f; --bar: #2f6fb0; --missing: #f3c6c6; } }
* { box-sizing: border-box; }
html { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
body { max-width: 62rem; margin: 0 auto; padding: 2rem 1.5rem 4rem; }
h1 { font-size: 1.1rem; margin: 0 0 1rem; color: var(--soft); font-weight: 600; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .8rem; }
h3 { font-size: 1.02rem; margin: 0 0 .3rem; line-height: 1.35; }
p { margin: .4rem 0; }
td, th, dd, dt, p, h3, li { unicode-bidi: isolate; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.verdict { border: 1px solid var(--line); border-left: 8px solid var(--tone); border-radius: 6px; background: var(--box); padding: 1rem 1.25rem; }
.verdict .words { font-size: 1.5rem; font-weight: 700; line-height: 1.25; color: var(--tone); margin: 0; }
.t-findings, .t-critical { --tone: var(--critical); } .t-not-checked, .t-medium { --tone: var(--medium); } .t-clean { --tone: var(--good); }
.t-high { --tone: var(--high); } .t-low { --tone: var(--low); } .t-info { --tone: var(--info); }
.counts { display: flex; flex-wrap: wrap; gap: .4rem .6rem; list-style: none; padding: 0; margin: .8rem 0 0; }
.chip { display: inline-block; border: 1px solid var(--tone); color: var(--tone); border-radius: 1rem; padding: 0 .6rem; font-size: .82rem; font-weight: 600; white-space: nowrap; }
.chip.none { border-color: var(--line); color: var(--soft); font-weight: 400; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem .45rem 0; border-bottom: 1px solid var(--line); }
th { font-size: .82rem; color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
td.short { color: var(--critical); font-weight: 700; }
td.bar { width: 10.5rem; padding-right: 0; }
svg { display: block; margin-top: .3rem; }
.track { fill: var(--missing); } .spare { fill: var(--box); stroke: var(--line); } .fill { fill: var(--bar); } .mark { fill: var(--ink); }
article { border: 1px solid var(--line); border-left: 5px solid var(--tone); border-radius: 6px; padding: .8rem 1rem; margin: 0 0 .9rem; break-inside: avoid; }
article.waived { opacity: .85; border-left-style: dashed; }
dl { display: grid; grid-template-columns: 6rem 1fr; gap: .15rem .8rem; margin: .6rem 0 0; }
dt { color: var(--soft); font-size: .88rem; } dd { margin: 0; }
.change { font-weight: 600; }
code { font: .9em ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
a { color: inherit; }
ul.refs { margin: 0; padding: 0; list-style: none; }
tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
@media print { html { font-size: 10.5pt; } body { max-width: none; padding: 0; } @page { margin: 16mm; }
  svg, .verdict, article { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
@media (max-width: 40rem) { td.bar { display: none; } th.bar { display: none; } dl { grid-template-columns: 1fr; } }
`;
