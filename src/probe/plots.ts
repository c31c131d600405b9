/** Distributions as pictures: SVG of numbers alone, no text from outside in it but names that were escaped. Pure. */
import { escapeMarkup } from '../findings/markup.js';
import { TIME_BINS, timeOfBin } from './record.js';
import { extent, histogram, quantile } from './stats/describe.js';

const WIDTH = 640;
const LEFT = 190;
const ROW_HEIGHT = 46;
const AXIS_HEIGHT = 22;
const BINS = 48;

/** One row of a picture. */
export interface PlotRow {
  readonly name: string;
  /** Heights from 0 up, one a bin; all rows of a picture have the same bins. */
  readonly counts: readonly number[];
  /** Where the middle is, as a share of the width; null: not drawn. */
  readonly median: number | null;
  readonly words: string;
}

/** Samples over one axis, one under the other, so that a shift between them is seen. Empty samples are left out. */
export function samplesPlot(samples: ReadonlyMap<string, readonly number[]>, unit: string): string {
  const full = [...samples].filter(([, values]) => values.length > 0);
  if (full.length === 0) return '';
  const [low, high] = extent(...full.map(([, values]) => values));
  const rows = full.map(([name, values]): PlotRow => {
    const median = quantile(values, 0.5);
    return {
      name,
      counts: histogram(values, BINS, [low, high]).counts,
      median: high === low ? 0.5 : (median - low) / (high - low),
      words: `n = ${values.length}, median ${short(median)} ${unit}`,
    };
  });
  const middle = (low + high) / 2;
  return plot(rows, [short(low), short(middle), `${short(high)} ${unit}`]);
}

/** Times in bins of `timeBin`, on a logarithmic axis that begins and ends where there is something. */
export function timesPlot(rows: readonly { readonly name: string; readonly bins: readonly number[] }[]): string {
  const used = rows.filter(({ bins }) => bins.some((count) => count > 0));
  if (used.length === 0) return '';
  const filled = Array.from({ length: TIME_BINS }, (_, bin) => bin).filter((bin) =>
    used.some(({ bins }) => (bins[bin] ?? 0) > 0),
  );
  const first = Math.max(0, filled[0]! - 1);
  const end = Math.min(TIME_BINS, filled.at(-1)! + 2);
  const plotted = used.map(({ name, bins }): PlotRow => {
    const counts = bins.slice(first, end);
    const total = counts.reduce((a, b) => a + b, 0);
    return { name, counts, median: medianOf(counts, total), words: `n = ${total}` };
  });
  const middle = timeOfBin((first + end) / 2);
  return plot(plotted, [`${short(timeOfBin(first))} ms`, `${short(middle)} ms`, `${short(timeOfBin(end))} ms`]);
}

function medianOf(counts: readonly number[], total: number): number | null {
  let seen = 0;
  for (const [bin, count] of counts.entries()) {
    seen += count;
    if (seen * 2 >= total) return (bin + 0.5) / counts.length;
  }
  return null;
}

/** Rows of bars with a mark at the middle of each, and three words along the axis. */
function plot(rows: readonly PlotRow[], axis: readonly [string, string, string]): string {
  const inner = WIDTH - LEFT - 10;
  const height = rows.length * ROW_HEIGHT + AXIS_HEIGHT;
  const bars = rows.map((row, i) => plotRow(row, i * ROW_HEIGHT, inner)).join('\n');
  const y = height - 6;
  const label = escapeMarkup(rows.map(({ name, words }) => `${name}: ${words}`).join('; '));
  return `<svg class="plot" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${label}">
${bars}
<text x="${LEFT}" y="${y}">${escapeMarkup(axis[0])}</text><text x="${LEFT + inner / 2}" y="${y}" text-anchor="middle">${escapeMarkup(axis[1])}</text><text x="${LEFT + inner}" y="${y}" text-anchor="end">${escapeMarkup(axis[2])}</text>
</svg>`;
}

function plotRow({ name, counts, median, words }: PlotRow, top: number, inner: number): string {
  const most = Math.max(1, ...counts);
  const base = top + ROW_HEIGHT - 8;
  const width = inner / counts.length;
  const bars = counts.map((count, i) => {
    if (count === 0) return '';
    const height = Math.max(1, (count / most) * (ROW_HEIGHT - 14));
    return `<rect class="fill" x="${(LEFT + i * width).toFixed(1)}" y="${(base - height).toFixed(1)}" width="${Math.max(1, width - 1).toFixed(1)}" height="${height.toFixed(1)}"/>`;
  });
  const mark =
    median === null
      ? ''
      : `<rect class="mark" x="${(LEFT + median * inner).toFixed(1)}" y="${top + 4}" width="1.5" height="${ROW_HEIGHT - 10}"/>`;
  return `<text x="0" y="${top + 20}">${escapeMarkup(name)}</text><text class="soft" x="0" y="${top + 34}">${escapeMarkup(words)}</text>
<rect class="mark" x="${LEFT}" y="${base}" width="${inner}" height="0.5"/>${bars.join('')}${mark}`;
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}
