/** What changed since an earlier report: pool, context, version, role, flags. */
import type { Report, ReportChange, ReportNode } from '../findings/report.js';

const NUMBERS = ['advertised', 'pool', 'acceptLimit'] as const;
const NOTHING = 'not there';

export function changesSince(before: Pick<Report, 'nodes'>, nodes: readonly ReportNode[]): ReportChange[] {
  const earlier = new Map(before.nodes.map((node) => [node.name, node]));
  const now = new Set(nodes.map(({ name }) => name));
  return [
    ...nodes.flatMap((node) => {
      const old = earlier.get(node.name);
      return old === undefined
        ? [{ node: node.name, field: 'node', before: NOTHING, after: 'there' }]
        : changesOf(old, node);
    }),
    ...before.nodes
      .filter(({ name }) => !now.has(name))
      .map(({ name }) => ({ node: name, field: 'node', before: 'there', after: NOTHING })),
  ];
}

function changesOf(old: ReportNode, node: ReportNode): ReportChange[] {
  const changes: ReportChange[] = [];
  const note = (field: string, before: string, after: string): void => {
    if (before !== after) changes.push({ node: node.name, field, before, after });
  };
  note('engine', old.engine ?? 'unknown', node.engine ?? 'unknown');
  note('version', old.version ?? 'unknown', node.version ?? 'unknown');
  note('role', old.role, node.role);
  for (const field of NUMBERS) note(field, number(old[field]), number(node[field]));
  const [oldFlags, flags] = [flagsOf(old), flagsOf(node)];
  for (const name of new Set([...oldFlags.keys(), ...flags.keys()])) {
    note(name, oldFlags.get(name) ?? NOTHING, flags.get(name) ?? NOTHING);
  }
  return changes;
}

const number = (value: number | null): string => (value === null ? 'unknown' : String(value));

/** The first word on each flag is the best source's. */
function flagsOf(node: ReportNode): Map<string, string> {
  const flags = new Map<string, string>();
  for (const { field, value } of node.sources) {
    if (field.startsWith('--') && !flags.has(field)) flags.set(field, value);
  }
  return flags;
}
