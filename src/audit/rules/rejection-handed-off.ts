import { before } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Observed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownVersion, unlessPaired } from './shared.js';

const WANTED = 'SGLang 0.5.22 or later';

/** A nightly of a release counts as before it: what it holds was not read. */
function findingFor(node: NodeFacts): Omit<Observed, 'at' | 'observed' | 'wanted'> | null {
  if (before(node, '0.5.20.dev0') === true) {
    return {
      title: 'This version hands rejected requests off to decode, which answers from stale pages',
      certain: true,
    };
  }
  if (before(node, '0.5.21') === true) {
    return {
      severity: 'high',
      title: 'Whether this version still hands rejected requests off to decode is not established',
      certain: false,
    };
  }
  if (before(node, '0.5.22') === true) {
    return {
      severity: 'medium',
      title: 'This version retires rejected requests, and lacks drain acknowledgements and their metrics',
      certain: true,
    };
  }
  return null;
}

export const handedOff: Rule = {
  meta: {
    id: 'rejection.handed-off',
    group: 'rejection',
    title: 'Rejected requests are handed off to decode',
    severity: 'critical',
    engines: ['sglang'],
    needs: ['version', 'role'],
    why: 'A request that prefill rejects goes on as a one-token placeholder; decode takes the hand-off for the whole prompt and answers from pages that hold the last owner’s data: 155 responses of a provider in 2026. Up to 0.5.19 (reproduced on 0.5.18); 0.5.20 was not read; 0.5.21 holds the admission fixes, and the public advice is 0.5.22, with drain acknowledgements.',
    how: 'The version of a node whose role is prefill or decode. A nightly carries the number of the release that comes after it.',
    change:
      'Upgrade both roles to SGLang 0.5.22 (0.5.23 with NIXL or MORI); until then advertise a context below every pool.',
    references: [sglangIssue(30233), sglangIssue(36988), sglangIssue(38935)],
    aisvs: ['C5.5.5', 'C5.3.1'],
    cwe: ['CWE-226', 'CWE-488'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (node.version !== null && before(node, '0.5.22') === false) {
      return passed(`${node.version.text} retires rejected requests at both queues`);
    }
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    if (node.version === null) return unknownVersion(node);
    const found = findingFor(node);
    if (found === null) return notChecked(`\`${node.version.text}\` is no version of SGLang`);
    return failed({
      at: node.versions.find(({ value }) => value === node.version?.text)?.source ?? node.versions[0]?.source ?? null,
      observed: `SGLang ${node.version.text} as ${node.role}`,
      wanted: WANTED,
      ...found,
    });
  },
};
