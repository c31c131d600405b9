import { signOf } from '../ask.js';
import type { LogSign } from '../../upstream/reading.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, type Observed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue } from './shared.js';

const SIGNS: readonly (readonly [LogSign, string])[] = [
  ['checksum-mismatch', 'KV checksum mismatch'],
  ['canary-violation', 'KV canary violation'],
  ['metadata-corruption', 'metadata or context corruption detected'],
];

export const corruptionSeen: Rule = {
  meta: {
    id: 'detection.corruption-seen',
    group: 'detection',
    title: 'The engine itself reports that KV was not what it should have been',
    severity: 'critical',
    engines: ['sglang'],
    needs: ['log'],
    why: 'Pages held other bytes than their owner’s. Where the check caught it the request failed; whatever ran before, or without the check, may have been answered from them.',
    how: 'Lines of the checksum, the canary or the metadata check in the log.',
    change:
      'Take the pair out of service, keep the logs (they hold token ids of tenants), and look for affected responses with `cofferdam exposure`.',
    references: [sglangIssue(39500), sglangIssue(17259), sglangIssue(36610)],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-226', 'CWE-354'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const [first, ...more] = SIGNS.flatMap(([sign, words]): Observed[] => {
      const seen = signOf(node, sign);
      if (seen === null) return [];
      return [
        { title: `The log reports: ${words}`, at: seen.source, observed: `${seen.count} times`, wanted: 'never' },
      ];
    });
    if (first !== undefined) return failed(first, ...more);
    return notChecked(
      node.logRead ? 'no such line in the log that was read, which shows only its own time' : 'no log was read',
    );
  },
};
