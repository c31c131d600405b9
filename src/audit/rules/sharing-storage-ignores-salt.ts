import { atLeast, before, flagValue } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag, unknownVersion } from './shared.js';

export const storageIgnoresSalt: Rule = {
  meta: {
    id: 'sharing.storage-ignores-salt',
    group: 'sharing',
    title: 'The storage tier of HiCache shares KV across salts',
    severity: 'high',
    engines: ['sglang'],
    needs: ['version', 'flags'],
    why: 'Up to 0.5.19 the keys of the storage tier hash the tokens only: a tenant with another salt gets the KV that the first one stored.',
    how: '`--hicache-storage-backend` on a version before 0.5.21 (0.5.20 was not read).',
    change: 'Upgrade to SGLang 0.5.22, or start without `--hicache-storage-backend`; empty the store afterwards.',
    references: [sglangIssue(26747), sglangIssue(37160)],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-488', 'CWE-653'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const backend = flagValue(node, 'hicache-storage-backend', '');
    if (backend === null) return unknownFlag(node, 'hicache-storage-backend');
    if (backend.value === '') return notApplicable('there is no storage tier');
    const salted = atLeast(node, '0.5.21');
    if (salted === null) return unknownVersion(node);
    if (salted) return passed('its keys hold salt and extra key');
    return failed({
      at: backend.source,
      observed: `\`--hicache-storage-backend ${backend.value}\` on SGLang ${node.version?.text}`,
      wanted: 'SGLang 0.5.21 or later, and a salt in every request',
      certain: before(node, '0.5.20.dev0') === true,
    });
  },
};
