/** What was sent, what came back and what was held back, as tables of Markdown or as JSON. */
import type { Options } from './options.js';
import type { Row, ScenarioReport } from './scenario.js';

export function reportText(reports: readonly ScenarioReport[], options: Options): string {
  if (options.output === 'json') return `${JSON.stringify({ seed: options.seed, scenarios: reports })}\n`;
  return `${reports.map(oneText).join('\n')}\n`;
}

function oneText({ name, title, engines, startedAt, seconds, rows, couldNotRun }: ScenarioReport): string {
  return [
    `### ${name}: ${title}`,
    '',
    `${engines}. ${startedAt.slice(0, 16)}Z, ${seconds} s.`,
    '',
    ...(rows.length === 0 ? [] : ['| side | sent (tokens) | came back | held back | |', '|---|---|---|---|---|']),
    ...rows.map(rowText),
    ...(couldNotRun === null ? [] : ['', `Could not run: ${couldNotRun}`]),
    '',
  ].join('\n');
}

function rowText({ side, sent, cameBack, heldBack, isAsExpected }: Row): string {
  const cells = [side, sent, cameBack, heldBack, isAsExpected ? 'as expected' : '**not as expected**'];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ')).join(' | ')} |`;
}
