/** `cofferdam explain`: what a rule is for, in its own words. */
import { RULES } from '../audit/registry.js';
import { RULE_GROUPS, type RuleMeta } from '../audit/rule.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { type CliIo, EXIT } from './io.js';

/** Columns of a line of text. */
const WIDTH = 100;

/** Returns the exit code; throws CodedError `usage` for an id that no rule has. */
export function explain(id: string | undefined, io: CliIo): number {
  if (id === undefined) {
    io.out(listed());
    return EXIT.clean;
  }
  const rule = RULES.find(({ meta }) => meta.id === id);
  if (rule === undefined) {
    const near = RULES.map(({ meta }) => meta.id).filter(
      (known) => known.includes(id) || id.includes(known.split('.')[1]!),
    );
    const hint =
      near.length === 0 ? '`cofferdam explain` lists them' : `there is ${near.map((name) => `\`${name}\``).join(', ')}`;
    throw new CodedError('usage', `Expected the ID of a rule, got ${shown(id)}; ${hint}`);
  }
  io.out(explained(rule.meta));
  return EXIT.clean;
}

function listed(): string {
  const lines = RULE_GROUPS.flatMap((group) => {
    const rules = RULES.filter(({ meta }) => meta.group === group);
    if (rules.length === 0) return [];
    return ['', group, ...rules.map(({ meta }) => `  ${meta.id.padEnd(44)} ${meta.severity.padEnd(9)} ${meta.title}`)];
  });
  return `${lines.join('\n').trim()}\n`;
}

function explained(meta: RuleMeta): string {
  const engines = meta.engines === 'all' ? 'every engine' : meta.engines.join(', ');
  const standards = [...(meta.aisvs ?? []).map((one) => `OWASP AISVS ${one}`), ...(meta.cwe ?? [])];
  const parts: readonly (readonly [string, string])[] = [
    ['what', `${meta.title} (${meta.severity} at most; ${engines})`],
    ['why it matters', meta.why],
    ['how it is seen', `${meta.how} It reads: ${meta.needs.join(', ')}.`],
    ['what to change', meta.change],
    ['read more', meta.references.join('\n')],
    ['standards', standards.join(', ')],
  ];
  const texts = parts.filter(([, text]) => text !== '').map(([head, text]) => `${head}\n${folded(text)}`);
  return `${meta.id}\n\n${texts.join('\n\n')}\n`;
}

function folded(text: string): string {
  return text
    .split('\n')
    .map((paragraph) => {
      const lines: string[] = [''];
      for (const word of paragraph.split(' ')) {
        if (lines.at(-1)!.length + word.length + 1 > WIDTH) lines.push('');
        lines[lines.length - 1] = `${lines.at(-1)!} ${word}`;
      }
      return lines.map((line) => ` ${line}`).join('\n');
    })
    .join('\n');
}
