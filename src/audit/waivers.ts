/** `.cofferdam-waivers.yaml`: findings that somebody has answered for, until a day. */
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import type { Finding } from '../findings/finding.js';
import { itemsAt, parseYaml, textAt } from './gather/tree.js';
import type { Tree } from './gather/yaml-tree.js';

export const WAIVERS_FILE = '.cofferdam-waivers.yaml';
/** Waivers of one file: more is no exception any more. */
export const WAIVERS_MAX = 1000;

export interface WaiverRow {
  /** A rule's id. */
  readonly id: string;
  /** Of a finding of `version.advisory`, any of its ids (CVE, GHSA, PYSEC); null for every other rule. */
  readonly advisory: string | null;
  /** A node's name; null: every node. */
  readonly node: string | null;
  readonly reason: string;
  /** `YYYY-MM-DD`, the last day on which it holds. */
  readonly expires: string;
}

/** The rule that gives one finding for each advisory. */
const ADVISORY_RULE = 'version.advisory';

const wrong = (line: number, wanted: string, got: unknown): CodedError =>
  new CodedError('usage', `Expected line ${line} of the waivers to ${wanted}, got ${shown(got)}`);

/** Throws `usage` for a file that is not as documented: a waiver that is misread would hide a finding. */
export function parseWaivers(text: string): WaiverRow[] {
  const parsed = parseYaml(text);
  if ('why' in parsed)
    throw new CodedError('usage', `Expected \`${WAIVERS_FILE}\` to be YAML, got text that is ${parsed.why}`);
  const rows = parsed.documents.flatMap((tree) => (tree.kind === 'list' ? tree.items : itemsAt(tree, 'waivers')));
  if (rows.length === 0 && text.trim() !== '') {
    throw new CodedError('usage', `Expected \`${WAIVERS_FILE}\` to hold a list \`waivers:\`, got none`);
  }
  if (rows.length > WAIVERS_MAX)
    throw new CodedError('usage', `Expected at most ${WAIVERS_MAX} waivers, got ${rows.length}`);
  return rows.map(rowOf);
}

function rowOf(tree: Tree): WaiverRow {
  const id = textAt(tree, 'id');
  const reason = textAt(tree, 'reason')?.trim() ?? '';
  const expires = textAt(tree, 'expires') ?? textAt(tree, 'expiry');
  if (id === null || id === '') throw wrong(tree.line, 'name the `id` of a rule', id);
  if (reason === '') throw wrong(tree.line, 'give a `reason`', reason);
  if (expires === null || !isDay(expires)) throw wrong(tree.line, 'give a day as `expires: YYYY-MM-DD`', expires);
  const advisory = textAt(tree, 'advisory');
  // One row for all advisories would hide those of next year too.
  if ((id === ADVISORY_RULE) !== (advisory !== null && advisory !== '')) {
    const wanted = id === ADVISORY_RULE ? 'name one `advisory`, such as `CVE-2026-93989`' : `name no \`advisory\``;
    throw wrong(tree.line, wanted, advisory);
  }
  const node = textAt(tree, 'node');
  return { id, advisory, node: node === '*' ? null : node, reason, expires };
}

function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** `today` as `YYYY-MM-DD`. A finding keeps the first waiver that fits; one that still holds goes before one that is over. */
export function withWaivers(findings: readonly Finding[], rows: readonly WaiverRow[], today: string): Finding[] {
  return findings.map((finding) => {
    const fitting = rows.filter(
      ({ id, node, advisory }) =>
        id === finding.id &&
        (node === null || node === finding.where.node) &&
        (advisory === null || finding.references.includes(advisory)),
    );
    const row = fitting.find(({ expires }) => expires >= today) ?? fitting[0];
    if (row === undefined) return finding;
    return { ...finding, waiver: { reason: row.reason, expires: row.expires, expired: row.expires < today } };
  });
}
