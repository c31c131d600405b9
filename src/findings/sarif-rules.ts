import { compareIds, compareSeverity, type Severity } from './finding.js';
import type { Report } from './report.js';
import type { RuleText } from './rule-text.js';
import { messageText } from './sarif-text.js';

/** GitHub's scale: above 9 critical, from 7 high, from 4 medium, above 0 low; 0 is none. */
const SECURITY_SEVERITY: Readonly<Record<Severity, string>> = {
  critical: '9.5',
  high: '8.0',
  medium: '5.5',
  low: '2.0',
  info: '0.0',
};

export interface SarifRules {
  readonly list: readonly object[];
  /** A reportingDescriptorReference (3.52). */
  reference(id: string): { readonly id: string; readonly index: number };
}

/** Descriptors (3.49) of the rules with these ids, in order of the ids; with their words where somebody wrote some. */
export function sarifRules(ids: readonly string[], report: Report, texts: readonly RuleText[]): SarifRules {
  const sorted = [...new Set(ids)].sort(compareIds);
  const places = new Map(sorted.map((id, index) => [id, index]));
  const known = new Map(texts.map((text) => [text.id, text]));
  const worst = worstById(report);
  return {
    list: sorted.map((id) => descriptor(id, worst.get(id), known.get(id))),
    reference: (id) => ({ id, index: places.get(id) ?? -1 }),
  };
}

function worstById({ findings }: Report): Map<string, Severity> {
  const worst = new Map<string, Severity>();
  for (const { id, severity } of findings) {
    const known = worst.get(id);
    if (known === undefined || compareSeverity(severity, known) < 0) worst.set(id, severity);
  }
  return worst;
}

function descriptor(id: string, severity: Severity | undefined, text: RuleText | undefined): object {
  const properties = {
    tags: ['security'],
    ...(severity === undefined ? {} : { 'security-severity': SECURITY_SEVERITY[severity] }),
  };
  const title = text === undefined ? `The rule ${id}` : text.title;
  const help = [text?.why, text?.change === undefined ? undefined : `What to change: ${text.change}`]
    .concat(text?.references.map((reference) => `See ${reference}`))
    .filter((part) => part !== undefined);
  return {
    id,
    name: id,
    shortDescription: { text: messageText(title) },
    fullDescription: { text: messageText(text?.why ?? title) },
    help: { text: messageText(help.length === 0 ? `Run \`cofferdam explain ${id}\`.` : help.join('\n\n')) },
    properties,
  };
}
