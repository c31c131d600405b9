import { atLeast, flagValue, switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { CHECKSUM, CHECKSUM_RANKS_FROM } from './detection-checksum-off.js';
import { poolKindOf } from './models.js';
import { sglangIssue, unknownFlag, unknownVersion, unlessPaired } from './shared.js';

export const checksumUnsafe: Rule = {
  meta: {
    id: 'detection.checksum-unsafe',
    group: 'detection',
    title: 'The KV checksum is on where a mismatch hangs the engine',
    severity: 'high',
    engines: ['sglang'],
    needs: ['version', 'role', 'flags'],
    why: 'Before 0.5.23 the ranks do not agree on a mismatch: one rank fails the request, the others go on, and all wait for each other for ever.',
    how: `\`--${CHECKSUM}\` with \`--tp-size\` above 1 before 0.5.23; or with a model whose pool the checksum does not know.`,
    change: `Upgrade both roles to SGLang 0.5.23; until then run without \`--${CHECKSUM}\` when \`--tp-size\` is above 1.`,
    references: [sglangIssue(39500), sglangIssue(39729)],
    cwe: ['CWE-833'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const on = switchOf(node, CHECKSUM, false);
    if (on === null) return unknownFlag(node, CHECKSUM);
    if (!on.value) return notApplicable('the checksum is off');
    const agreed = atLeast(node, CHECKSUM_RANKS_FROM);
    if (agreed === null) return unknownVersion(node);
    if (agreed) {
      const kind = poolKindOf(node);
      if (kind?.value !== 'deepseek-v4') return passed('its ranks agree on a mismatch');
      const observed = 'a model of the DeepSeek V4 family, whose pool the checksum does not know';
      return failed({
        severity: 'info',
        at: kind.source,
        observed,
        wanted: 'a test of this model with it',
        certain: false,
      });
    }
    const ranks = flagValue(node, 'tp-size', '1');
    if (ranks === null) return unknownFlag(node, 'tp-size');
    if (Number(ranks.value) === 1) return passed('it has one rank');
    return failed({
      at: on.source,
      observed: `\`--tp-size ${ranks.value}\` on SGLang ${node.version?.text}`,
      wanted: 'SGLang 0.5.23 or later',
    });
  },
};
