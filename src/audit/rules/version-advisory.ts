import { ADVISORIES } from '../advisories.data.js';
import { type Advisory, fixedIn, inRange, rangeText } from '../advisories.js';
import { flagOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { hasConnector, isActive, transferOf, unknownVersion } from './shared.js';

export const advisory: Rule = {
  meta: {
    id: 'version.advisory',
    group: 'version',
    title: 'A public advisory names this version',
    severity: 'critical',
    engines: ['sglang', 'vllm', 'llamacpp', 'lmcache', 'mooncake', 'tensorrt-llm', 'dynamo'],
    needs: ['version', 'flags', 'transfer-config'],
    why: 'The advisory of each finding says it: caches that are shared across tenants, sockets that run code, logits of other requests. Fixes are rarely backported.',
    how: 'The version against a table of CVE, GHSA and PYSEC entries with their ranges (PEP 440: pre-releases and nightlies come before their release). A range that is uncertain or not public says so.',
    change: 'Upgrade to the version that the finding names, or newer.',
    references: ['https://osv.dev/'],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-1395'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (node.version === null) return unknownVersion(node);
    const own = ADVISORIES.filter(({ product }) => product === node.engine);
    const [first, ...more] = own.flatMap((row) => finding(row, node));
    if (first !== undefined) return failed(first, ...more);
    return passed(`none of ${own.length} advisories names ${node.version.text}`);
  },
};

/** Whether what the advisory is about is in use. Null: not known. */
function inUse({ connector, flag }: Advisory, node: NodeFacts): boolean | null {
  if (connector !== undefined) {
    const transfer = transferOf(node);
    if (transfer !== null) return hasConnector(transfer.value, new RegExp(`^${connector}`));
    return flagOf(node, 'kv-transfer-config').state === 'default' ? false : null;
  }
  if (flag === undefined) return true;
  const answer = flagOf(node, flag);
  if (answer.state === 'unknown') return null;
  return answer.state === 'set' && isActive(answer.value ?? '') && !(flag.endsWith('-size') && answer.value === '1');
}

const subjectOf = ({ connector, flag }: Advisory): string =>
  connector === undefined ? `\`--${flag}\`` : `a connector of ${connector}`;

function finding(row: Advisory, node: NodeFacts): Observed[] {
  const version = node.version!;
  const affected = inRange(version, row.range);
  const used = inUse(row, node);
  if (affected === 'no' || used === false) return [];
  const open = row.range.before === undefined && row.range.through === undefined && row.range.all !== true;
  // A later patch of the last version that is named: nobody says that it has the fix, and nobody that it has not.
  const past = row.range.through !== undefined && affected === 'maybe';
  const fixed = fixedIn(row.range);
  const last = row.range.through === undefined ? '' : ` than ${row.range.through}`;
  return [
    {
      // Which versions are affected is not public, or whether what it is about is in use: a hint, not an accusation.
      severity: open || past || used === null ? 'info' : row.severity,
      subject: row.ids[0],
      title: `${row.ids[0]}: ${row.title}`,
      at: node.versions.find(({ value }) => value === version.text)?.source ?? node.versions[0]?.source ?? null,
      observed: `${node.engine} ${version.text}; affected: ${rangeText(row.range)}${used === null ? `; whether ${subjectOf(row)} is in use was not read` : ''}`,
      wanted: fixed === null ? `a newer version${last}; none with the fix is named` : `${fixed} or newer`,
      change:
        fixed === null
          ? `Upgrade past what the advisory names, after reading it`
          : `Upgrade ${node.engine} to ${fixed} or newer`,
      references: [...row.ids, row.source],
      certain: row.certain && affected === 'yes' && used === true,
    },
  ];
}
