/** A story as a sequence diagram in text, with both pools beside each step. */
import type { Lane } from './models/handoff-words.js';
import type { Story, StoryStep } from './story.js';

const LANES: readonly Lane[] = ['client', 'gateway', 'prefill', 'decode'];
const LANE_WIDTH = 20;
const STEP_WIDTH = 7;
const WIDTH = STEP_WIDTH + (LANES.length - 1) * LANE_WIDTH + 22;

const column = (lane: Lane): number => STEP_WIDTH + LANES.indexOf(lane) * LANE_WIDTH + 2;

/** What a map's characters mean. */
export const MAP_LEGEND =
  "pools: a letter owns the page (small: it drains), '.' is free, '#' is sealed; behind it whose content decode's page holds ('-' none, '!' torn, a number: sealed for that tenant)";

export function diagramOf(story: Story): string {
  const lines = [head()];
  for (const step of story.steps) lines.push(row(step));
  lines.push('', MAP_LEGEND);
  return lines.join('\n');
}

function put(cells: string[], at: number, text: string): void {
  for (let i = 0; i < text.length && at + i < cells.length; i++) cells[at + i] = text.charAt(i);
}

function head(): string {
  const cells = Array<string>(WIDTH).fill(' ');
  put(cells, 0, 'step');
  for (const lane of LANES) put(cells, column(lane) - Math.floor(lane.length / 2), lane);
  return `${cells.join('')}  prefill  decode`;
}

function row(step: StoryStep): string {
  const cells = Array<string>(WIDTH).fill(' ');
  put(cells, 0, String(step.step).padStart(4));
  for (const lane of LANES) put(cells, column(lane), '│');
  const [from, to] = [column(step.from), column(step.to)];
  if (from === to) put(cells, from, `● ${step.label}`);
  else arrow(cells, from, to, step);
  return `${cells.join('').trimEnd().padEnd(WIDTH)}  ${step.prefillMap.padEnd(7)}  ${step.decodeMap}`.trimEnd();
}

function arrow(cells: string[], from: number, to: number, step: StoryStep): void {
  const [left, right] = from < to ? [from, to] : [to, from];
  const line = step.isWrite ? '═' : '─';
  for (let i = left + 1; i < right; i++) cells[i] = line;
  const label = ` ${step.label} `.slice(0, right - left - 4);
  put(cells, left + Math.ceil((right - left - label.length) / 2), label);
  const end = step.isLost ? '✗' : from < to ? '▶' : '◀';
  cells[from < to ? right - 1 : left + 1] = end;
}
