import { atLeast, before, variableOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { isActive, sglangIssue, unknownVariable, unknownVersion, unlessPaired } from './shared.js';

const VARIABLE = 'SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE';
/** The newest version whose default was read. */
const READ_TO = '0.5.24.dev0';

export const deferredOff: Rule = {
  meta: {
    id: 'release.deferred-off',
    group: 'release',
    title: 'Decode gives pages back before the network is done with them',
    severity: 'high',
    engines: ['sglang'],
    needs: ['version', 'role', 'variables'],
    why: 'After an abort a late one-sided write can land in pages that already belong to another request: its text changes and nothing is logged. Deferred release keeps them until every prefill rank has drained. Absent up to 0.5.18, off by default in 0.5.19, on by default from 0.5.21.',
    how: `\`${VARIABLE}\` in the environment, and the default of the version.`,
    change: `Upgrade to SGLang 0.5.22 or later and set \`${VARIABLE}=1\` on both roles.`,
    references: [sglangIssue(24527), sglangIssue(36610), sglangIssue(38961)],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-416', 'CWE-362'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    if (node.version === null) return unknownVersion(node);
    const wanted = `\`${VARIABLE}=1\` on 0.5.22 or later`;
    const finding = (observed: string, over: Partial<Observed> = {}): RuleOutcome =>
      failed({ at: node.versions[0]?.source ?? null, observed, wanted, ...over });
    if (before(node, '0.5.19.dev0') === true) return finding(`SGLang ${node.version.text} cannot defer the release`);
    const answer = variableOf(node, VARIABLE);
    if (answer.state === 'unknown' || (answer.state === 'set' && answer.value === null))
      return unknownVariable(VARIABLE);
    if (answer.state === 'set') {
      return isActive(answer.value ?? '')
        ? passed(`\`${VARIABLE}=${answer.value}\``)
        : finding(`\`${VARIABLE}=${answer.value}\``, { at: answer.source });
    }
    if (atLeast(node, '0.5.21') === true) {
      return before(node, READ_TO) === true ? passed('on by default in this version') : unknownVariable(VARIABLE);
    }
    const certain = before(node, '0.5.20.dev0') === true;
    return finding(`\`${VARIABLE}\` is not set on SGLang ${node.version.text}`, { at: answer.source, certain });
  },
};
