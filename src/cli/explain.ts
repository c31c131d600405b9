/** `cofferdam explain`: what a rule of the audit or a finding of the probe is for, in its own words. */
import { RULES } from '../audit/registry.js';
import { RULE_GROUPS, type RuleMeta } from '../audit/rule.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { PROBE_RULES, type ProbeRule } from '../probe/rule-texts.js';
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
  const probed = PROBE_RULES.find((each) => each.id === id);
  if (probed !== undefined) io.out(explained(id, probeParts(probed)));
  else if (rule !== undefined) io.out(explained(id, auditParts(rule.meta)));
  else {
    const near = [...RULES.map(({ meta }) => meta.id), ...PROBE_RULES.map((each) => each.id)].filter(
      (known) => known.includes(id) || id.includes(known.split('.')[1]!),
    );
    const hint =
      near.length === 0 ? '`cofferdam explain` lists them' : `there is ${near.map((name) => `\`${name}\``).join(', ')}`;
    throw new CodedError('usage', `Expected the ID of a rule, got ${shown(id)}; ${hint}`);
  }
  return EXIT.clean;
}

function listed(): string {
  const lines = RULE_GROUPS.flatMap((group) => {
    const rules = RULES.filter(({ meta }) => meta.group === group);
    if (rules.length === 0) return [];
    return ['', group, ...rules.map(({ meta }) => lineOf(meta))];
  });
  lines.push('', 'probe', ...PROBE_RULES.map(lineOf));
  return `${lines.join('\n').trim()}\n`;
}

function lineOf({ id, severity, title }: Pick<RuleMeta, 'id' | 'severity' | 'title'>): string {
  return `  ${id.padEnd(44)} ${severity.padEnd(9)} ${title}`;
}

type Parts = readonly (readonly [head: string, text: string])[];

function auditParts(meta: RuleMeta): Parts {
  const engines = meta.engines === 'all' ? 'every engine' : meta.engines.join(', ');
  const standards = [...(meta.aisvs ?? []).map((one) => `OWASP AISVS ${one}`), ...(meta.cwe ?? [])];
  return [
    ['what', `${meta.title} (${meta.severity} at most; ${engines})`],
    ['why it matters', meta.why],
    ['how it is seen', `${meta.how} It reads: ${meta.needs.join(', ')}.`],
    ['what to change', meta.change],
    ['read more', meta.references.join('\n')],
    ['standards', standards.join(', ')],
  ];
}

function probeParts({ title, severity, why, wanted, change, references, certain }: ProbeRule): Parts {
  return [
    ['what', `${title} (${severity} at most; ${certain ? 'proof' : 'a sign, not a proof'})`],
    ['why it matters', why],
    ['how it is seen', `\`cofferdam probe\` did not see what it should have: ${wanted}.`],
    ['what to change', change],
    ['read more', references.join('\n')],
  ];
}

function explained(id: string, parts: Parts): string {
  const texts = parts.filter(([, text]) => text !== '').map(([head, text]) => `${head}\n${folded(text)}`);
  return `${id}\n\n${texts.join('\n\n')}\n`;
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
