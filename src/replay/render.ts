/** Results in words: a story of a few lines for one replay, and a table for all of them. */
import { assert } from '../base/assert.js';
import { CATALOGUE, FAULTS, type Outcome } from '../handoff/faults.js';
import { type GuardName, GUARDS } from '../handoff/guards.js';
import type { LeakedMarker, LeakedPage, ReplayResult } from './replay.js';

/** Markers of one answer that are told; the JSON has all. */
const MARKERS_SHOWN_MAX = 2;
const NAME_WIDTH: number = Math.max(...FAULTS.map((name) => name.length)) + 2;
const CELL_WIDTH = 34;

const OUTCOME_WORDS: Readonly<Record<Outcome, string>> = {
  refused: 'refused',
  'failed-closed': 'failed closed',
  shared: 'shared',
  leaked: 'LEAKED',
  answered: 'answered',
  hung: 'HUNG',
};

/** One line for every fault, with its public source. */
export function renderList(): string {
  return FAULTS.map((name) => `${name.padEnd(NAME_WIDTH)}${CATALOGUE[name].source}\n`).join('');
}

export function renderResult(result: ReplayResult): string {
  const lines = [
    `${result.fault}, ${guardsInWords(result.guards)}`,
    ...result.evidence.story.map((sentence) => `  ${sentence}`),
    ...verdict(result).map((sentence) => `  ${sentence}`),
    `  ${OUTCOME_WORDS[result.outcome]}${expectation(result)}`,
  ];
  return `${lines.join('\n')}\n`;
}

function guardsInWords(guards: ReplayResult['guards']): string {
  const off = GUARDS.filter((name) => guards[name] === 'off');
  const on = GUARDS.filter((name) => guards[name] === 'on');
  if (off.length === 0) return 'every guard on';
  if (on.length === 0) return 'every guard off';
  return off.length <= on.length ? `guards off: ${off.join(', ')}` : `no guards on but: ${on.join(', ')}`;
}

function expectation({ evidence }: ReplayResult): string {
  if (evidence.expected === null)
    return evidence.isAsExpected ? '.' : ', although a guard that stops this fault is on.';
  if (evidence.isAsExpected) return ', as the catalogue says.';
  return `, and the catalogue says: ${OUTCOME_WORDS[evidence.expected]}.`;
}

function verdict(result: ReplayResult): string[] {
  const { outcome, status, stoppedBy, evidence } = result;
  const error = evidence.error === null ? '' : ` \`${evidence.error.code}\`: ${evidence.error.message}`;
  switch (outcome) {
    case 'hung':
      return ['That request got no answer, and nothing was left to do that could have brought one.'];
    case 'answered':
      return ['globex got a 200 with its own right answer, the same that a quiet engine gives.'];
    case 'shared':
      return [
        `globex got a 200 with its own right answer; ${evidence.cachedTokens} tokens of its prompt came from ${evidence.sharedPages} pages that acme had left.`,
      ];
    case 'refused':
      return [`globex was refused by ${guardWords(stoppedBy)}: ${status}${error}`];
    case 'failed-closed':
      return failedWords(result, error);
    case 'leaked':
      return leakWords(result);
  }
}

function failedWords({ status, stoppedBy, evidence }: ReplayResult, error: string): string[] {
  const [note] = evidence.guardNotes;
  if (note === undefined)
    return [`globex got an error and no answer (guard \`${stoppedBy ?? 'none'}\`): ${status}${error}`];
  return [
    `globex got no answer: ${guardWords(stoppedBy)} ended its request. ${status}${error}`,
    `What the engine noted: ${note}.`,
  ];
}

function guardWords(guard: GuardName | null): string {
  return guard === null ? 'no guard but the engine itself' : `the guard \`${guard}\``;
}

function leakWords({ status, evidence }: ReplayResult): string[] {
  const { markers, markerCharacters, foreignPages } = evidence;
  if (markers.length === 0) {
    return [`globex got a ${status} that is not its own answer; ${foreignPages} foreign pages were in its table.`];
  }
  const shown = markers.slice(0, MARKERS_SHOWN_MAX).map(({ text }) => `\`${text}\``);
  return [
    `globex got a ${status} with ${markerCharacters} characters of acme's key in it: ${shown.join(', ')}.`,
    sourceWords(markers[0] as LeakedMarker),
  ];
}

function sourceWords({ pages, pageCount }: LeakedMarker): string {
  const first = pages[0];
  if (first === undefined) return 'No page in its table is known to have held them.';
  const more = pageCount > 1 ? ` (and ${pageCount - 1} more, since acme's text repeats it)` : '';
  return (
    `They lay in page ${first.page}${more}, place ${first.place} of globex's table, ` +
    `${ownerWords(first)} by ${first.writer} at step ${first.writtenAtStep}.`
  );
}

function ownerWords({ slot, attempt }: LeakedPage): string {
  return slot === null
    ? "kept for acme's next prompts, written"
    : `written for acme's slot ${slot}, attempt ${attempt}`;
}

/** The head of the matrix; a row for each fault follows as it is there. */
export function matrixHead(): string {
  return `${'fault'.padEnd(NAME_WIDTH)}${'every guard off'.padEnd(CELL_WIDTH)}every guard on\n`;
}

export function matrixRow([off, on]: readonly ReplayResult[]): string {
  assert(off !== undefined && on !== undefined, 'a row of the matrix has two cells');
  return `${off.fault.padEnd(NAME_WIDTH)}${cell(off).padEnd(CELL_WIDTH)}${cell(on)}`.trimEnd().concat('\n');
}

function cell({ outcome, status, stoppedBy, evidence }: ReplayResult): string {
  const wrong = evidence.isAsExpected ? '' : ` (wanted: ${evidence.expected ?? 'no harm'})`;
  const guard = stoppedBy === null ? '' : `, ${stoppedBy}`;
  const told = outcome === 'leaked' ? ` ${evidence.markerCharacters} characters` : '';
  const code = status === null || status === 200 ? '' : ` ${status}`;
  return `${OUTCOME_WORDS[outcome]}${told}${code}${guard}${wrong}`;
}

/** One word a cell, so that all guards fit beside each other. */
const SHORT_WORDS: Readonly<Record<Outcome, string>> = {
  refused: 'refused',
  'failed-closed': 'failed',
  shared: 'SHARED',
  leaked: 'LEAKED',
  answered: 'own',
  hung: 'HUNG',
};
const SHORT_WIDTH = 10;

const short = (text: string): string => text.padEnd(SHORT_WIDTH);

/** The head of the full matrix: all off, all on, then each guard alone. */
export function fullMatrixHead(): string {
  const legend =
    "refused: no engine saw it; failed: an error and no answer; own: globex's own right answer; + the guard is one that stops the fault.\n\n";
  const columns = ['all off', 'all on', ...GUARDS].map(short).join('');
  return `${legend}${'fault'.padEnd(NAME_WIDTH)}${columns}`.trimEnd().concat('\n');
}

export function fullMatrixRow(row: readonly ReplayResult[]): string {
  const cells = row.map((result, column) => {
    const guard = GUARDS[column - 2];
    const mark = guard !== undefined && CATALOGUE[result.fault].guards.includes(guard) ? '+' : '';
    return short(`${SHORT_WORDS[result.outcome]}${mark}${result.evidence.isAsExpected ? '' : '?'}`);
  });
  return `${(row[0]?.fault ?? '').padEnd(NAME_WIDTH)}${cells.join('')}`.trimEnd().concat('\n');
}

export function matrixFoot(results: readonly ReplayResult[]): string {
  const right = results.filter(({ evidence }) => evidence.isAsExpected).length;
  return `\n${right} of ${results.length} as the catalogue says.\n`;
}
