/** A driven counterexample in words: its steps, and what came of them beside what the checker says. */
import type { Outcome } from '../handoff/faults.js';
import { ALL_GUARDS, guardsOf } from '../handoff/guards.js';
import type { DrivenResult, StepFate } from './trace-replay.js';

const FATE_WORDS: Readonly<Record<StepFate, string>> = {
  told: '',
  early: ' (in one turn with an earlier step)',
  impossible: ' (not possible here)',
  stopped: ' (refused here)',
};

const OUTCOME_WORDS: Readonly<Record<Outcome, string>> = {
  refused: 'refused',
  'failed-closed': 'failed closed',
  shared: 'SHARED',
  leaked: 'LEAKED',
  answered: 'answered',
  hung: 'HUNG',
};

export function renderDriven(result: DrivenResult): string {
  const lines = [
    guardsInWords(result),
    ...result.steps.map(({ n, words, fate }) => `  ${String(n).padStart(2)}  ${words}${FATE_WORDS[fate]}`),
    ...cameOf(result).map((words) => `  ${words}`),
    `  ${OUTCOME_WORDS[result.outcome]}, ${expectation(result)}`,
  ];
  return `${lines.join('\n')}\n`;
}

function guardsInWords({ fault, guards }: DrivenResult): string {
  const off = guardsOf(ALL_GUARDS & ~guards);
  return `${fault}, ${off.length === 0 ? 'every guard on' : `guards off: ${off.join(', ')}`}`;
}

function expectation({ isAsExpected, isStopped, invariant }: DrivenResult): string {
  if (isStopped) return isAsExpected ? 'as the guards promise.' : 'although a guard that stops this fault is on.';
  const said = `\`${invariant}\` breaks`;
  return isAsExpected ? `as \`verify\` says: ${said}.` : `and \`verify\` says: ${said}.`;
}

/** What the engine did, a sentence each. */
function cameOf(result: DrivenResult): string[] {
  const { victim, foreignTokens, foreignPages, markerCharacters, markerOwner, lostPages, error, guardNotes } = result;
  const lines: string[] = [];
  if (foreignTokens > 0) {
    lines.push(`${foreignTokens} tokens left for ${victim} that were computed over ${foreignPages.join('; ')}.`);
  }
  if (markerCharacters > 0) {
    lines.push(`Its answer has ${markerCharacters} characters in a row of the marker of ${markerOwner ?? 'nobody'}.`);
  }
  if (lostPages > 0)
    lines.push(`${lostPages} pages of decode are held, and nothing is left that could give them back.`);
  if (error !== null) lines.push(`${victim} got an error: ${error}`);
  if (result.outcome === 'answered') lines.push(`${victim} got its answer, over pages of its own.`);
  if (result.isStopped) lines.push(...guardNotes.slice(0, 1).map((note) => `Guard ${note}.`));
  return lines;
}
