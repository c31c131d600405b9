/** The report for a terminal. Pure. */
import { createColors } from 'picocolors';
import { escapeControl } from '../base/text.js';
import { type Cell, innerWidth, renderGrid, wrap } from '../findings/grid.js';
import { type TableOptions, TABLE_WIDTH_DEFAULT, TABLE_WIDTH_MIN } from '../findings/render-table.js';
import { whole } from './plan.js';
import type { RunRecord } from './record.js';
import { headlineOf, hitText } from './report.js';
import type { ExperimentResult } from './result.js';

const NAME_WIDTH = 17;
const VERDICT_WIDTH = 15;
const NUMBER_WIDTH = 9;
const HITS_SHOWN_MAX = 10;

/** Ends with the verdict and a line break. */
export function probeTable(record: RunRecord, options: TableOptions = {}): string {
  const width = Math.max(TABLE_WIDTH_MIN, options.width ?? TABLE_WIDTH_DEFAULT);
  const fold = (line: string): string => wrap(escapeControl(line), width);
  const colours = createColors(options.colour ?? false);
  const paint = painter(colours, record.verdict);
  return `${[
    ...headLines(record).map(fold),
    grid(record, width, colours),
    ...evidenceLines(record).map(fold),
    ...hitLines(record).map(fold),
    paint(fold(headlineOf(record))),
  ].join('\n')}\n`;
}

type Colours = ReturnType<typeof createColors>;

function painter(colours: Colours, verdict: string): (text: string) => string {
  if (verdict === 'isolated') return colours.green;
  return verdict === 'leaks' || verdict === 'starves' ? colours.red : colours.yellow;
}

function headLines({ header, knowledge, requests, tokens, runs, traffic }: RunRecord): string[] {
  const throttled = traffic.reduce((all, each) => all + each.throttled, 0);
  const engine = knowledge?.engine == null ? '' : `, ${knowledge.engine} ${knowledge.engineVersion ?? ''}`.trimEnd();
  return [
    `probe of ${header.endpoint}, model ${header.model}, tenants ${header.tenants.join(', ')}${engine}`,
    `${whole(requests)} requests, ${whole(tokens)} tokens as the endpoint counted them${throttled === 0 ? '' : `, ${throttled} times 429`}${runs === 1 ? '' : `, in ${runs} runs`}; seed ${header.seed}, run ${header.runId}`,
  ];
}

function grid({ results }: RunRecord, width: number, colours: Colours): string {
  const left = innerWidth(width, 6) - NAME_WIDTH - VERDICT_WIDTH - 3 * NUMBER_WIDTH;
  const rows = results.map((result) => row(result, colours));
  const head = ['experiment', 'verdict', 'answers', 'hits', 'bound', 'control'];
  return renderGrid(
    head,
    rows,
    [NAME_WIDTH, VERDICT_WIDTH, NUMBER_WIDTH, NUMBER_WIDTH, NUMBER_WIDTH, Math.max(16, left)],
    true,
  );
}

function row({ name, verdict, sent, hits, bound, control }: ExperimentResult, colours: Colours): Cell[] {
  return [
    { text: escapeControl(name) },
    { text: verdict, paint: painter(colours, verdict) },
    { text: whole(sent) },
    { text: String(hits) },
    { text: boundText(bound) },
    { text: escapeControl(control) },
  ];
}

/** `0.25 %`; a dash where there is none. */
export function boundText(bound: number | null): string {
  return bound === null ? '-' : `${(bound * 100).toFixed(2)} %`;
}

function evidenceLines({ results }: RunRecord): string[] {
  return results.flatMap(({ name, evidence }) => evidence.map((sentence) => `  ${name}: ${sentence}`));
}

function hitLines({ hits }: RunRecord): string[] {
  if (hits.length === 0) return [];
  const more = hits.length - HITS_SHOWN_MAX;
  return [
    'hits:',
    ...hits.slice(0, HITS_SHOWN_MAX).map((hit) => `  ${hit.experiment}: ${hitText(hit)}`),
    ...(more > 0 ? [`  and ${more} more: --output json has them all`] : []),
  ];
}
