/**
 * Writes docs/RULES.md from what the rules say of themselves.
 *
 *   node dist/tools/rules-doc.js
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ADVISORIES } from '../src/audit/advisories.data.js';
import { type Advisory, rangeText } from '../src/audit/advisories.js';
import { RULES } from '../src/audit/registry.js';
import { RULE_GROUPS, type RuleGroup, type RuleMeta } from '../src/audit/rule.js';

export const RULES_DOC = 'docs/RULES.md';

const GROUPS: Readonly<Record<RuleGroup, string>> = {
  capacity: 'Whether every pool holds what clients are told they may send.',
  version: 'What is known against the version itself.',
  rejection: 'What becomes of a request that a node refuses.',
  release: 'When pages go back to the pool, and what strands them.',
  detection: 'Whether anybody would notice.',
  sharing: 'What tenants share, and by which key.',
  exposure: 'Who can reach what.',
  sources: 'Where the audit’s numbers come from.',
};

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const anchor = (id: string): string => id.replaceAll('.', '');

export function rulesDoc(): string {
  const rules = RULES.map(({ meta }) => meta);
  return `${[
    '# Rules of `cofferdam audit`',
    '',
    '<!-- Made by `node dist/tools/rules-doc.js` from src/audit/rules; a test holds it to them. -->',
    '',
    `${rules.length} rules, the gravest severity that each gives, and the engines that it asks. A finding may be less grave than its rule, and says`,
    'so when it is a sign and not a proof. A rule that lacks what it needs says *not checked* and never *passed*. `cofferdam explain ID` shows the',
    'same text.',
    '',
    ...table(
      ['id', 'severity', 'engines', 'what is wrong'],
      rules.map((meta) => [`[\`${meta.id}\`](#${anchor(meta.id)})`, meta.severity, engines(meta), meta.title]),
    ),
    ...RULE_GROUPS.flatMap((group) => {
      const own = rules.filter((meta) => meta.group === group);
      return own.length === 0 ? [] : ['', `## ${group}`, '', GROUPS[group], ...own.flatMap(section)];
    }),
    '',
    '## Advisories',
    '',
    `What \`version.advisory\` compares with: ${ADVISORIES.length} entries. Versions as PEP 440 orders them: a nightly carries the number of the next release and comes`,
    'before it. An uncertain range is reported as a sign.',
    '',
    ...table(
      ['ids', 'product', 'affected', 'severity', 'range', 'what'],
      ADVISORIES.map((row) => [
        row.ids.join(', '),
        row.product,
        rangeText(row.range),
        row.severity,
        row.certain ? 'certain' : 'uncertain',
        `[${row.title}](${row.source})${condition(row)}`,
      ]),
    ),
  ].join('\n')}\n`;
}

function condition({ connector, flag }: Advisory): string {
  if (connector !== undefined) return ` (with a connector of the kind \`${connector}…\`)`;
  return flag === undefined ? '' : ` (with \`--${flag}\`)`;
}

function engines(meta: RuleMeta): string {
  return meta.engines === 'all' ? 'all' : meta.engines.join(', ');
}

function section(meta: RuleMeta): string[] {
  const standards = [...(meta.aisvs ?? []).map((one) => `OWASP AISVS ${one}`), ...(meta.cwe ?? [])];
  return [
    '',
    `### ${meta.id}`,
    '',
    `**${meta.title}** (${meta.severity}; ${engines(meta)})`,
    '',
    `*Why it matters.* ${meta.why}`,
    '',
    `*How it is seen.* ${meta.how} Needs: ${meta.needs.join(', ')}.`,
    '',
    `*What to change.* ${meta.change}`,
    '',
    `*Read more.* ${[...meta.references.map((address) => `<${address}>`), ...standards].join(', ')}`,
  ];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(RULES_DOC, rulesDoc());
