import { atLeast, flagValue, switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { poolKindOf } from './models.js';
import { sglangIssue, unknownFlag, unknownVersion, unlessPaired } from './shared.js';

export const CHECKSUM = 'disaggregation-enable-kv-checksum';

/** The first version that has the flag, and the first in which several ranks agree on a mismatch. */
export const CHECKSUM_FROM = '0.5.21';
export const CHECKSUM_RANKS_FROM = '0.5.23';

export const checksumOff: Rule = {
  meta: {
    id: 'detection.checksum-off',
    group: 'detection',
    title: 'Transferred KV is not compared with what prefill sent',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['version', 'role', 'flags'],
    why: 'A hand-off that wrote fewer pages than decode reads is exactly what the checksum catches: in the public incident nothing did.',
    how: `\`--${CHECKSUM}\` is off, on a version and a layout that can have it on.`,
    change: `Start both roles with \`--${CHECKSUM}\` (SGLang 0.5.23; with one rank from 0.5.21).`,
    references: [sglangIssue(39500), sglangIssue(38704)],
    cwe: ['CWE-354'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const has = atLeast(node, CHECKSUM_FROM);
    if (has === null) return unknownVersion(node);
    if (!has) {
      return atLeast(node, '0.5.20.dev0') === true
        ? notChecked('whether 0.5.20 has the checksum is not established')
        : notApplicable('this version has no checksum');
    }
    const said = switchOf(node, CHECKSUM, false);
    if (said === null) return unknownFlag(node, CHECKSUM);
    if (said.value) return passed('the checksum is on');
    if (poolKindOf(node)?.value === 'deepseek-v4') return notApplicable('its model’s pool is not covered');
    if (atLeast(node, CHECKSUM_RANKS_FROM) !== true) {
      const ranks = flagValue(node, 'tp-size', '1');
      if (ranks === null) return unknownFlag(node, 'tp-size');
      if (Number(ranks.value) > 1) return notApplicable('with several ranks it may hang before 0.5.23');
    }
    return failed({ at: said.source, observed: `\`--${CHECKSUM}\` is off`, wanted: 'on, on both roles' });
  },
};
