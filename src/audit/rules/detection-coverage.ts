import { flagValue, switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { CHECKSUM } from './detection-checksum-off.js';
import { poolKindOf } from './models.js';
import { sglangIssue, unlessPaired } from './shared.js';

export const coverage: Rule = {
  meta: {
    id: 'detection.coverage',
    group: 'detection',
    title: 'Checksum or canary may not cover this model',
    severity: 'info',
    engines: ['sglang'],
    needs: ['role', 'flags'],
    why: 'Neither covers every kind of KV pool. The canary knows plain, sliding-window and DeepSeek V4 pools by their exact type and refuses to start with others; the checksum knows more, and the public advice still names models for which both are in progress (GLM-5.3, DeepSeek V4).',
    how: 'Checksum or canary is on; the model’s name does not say that its pool is a plain one.',
    change: 'Prove it on a test bench: damage a page on purpose there and see the request fail, for this model.',
    references: [sglangIssue(39500), sglangIssue(26819)],
    cwe: ['CWE-354'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const canary = flagValue(node, 'kv-canary', 'none');
    const checksum = switchOf(node, CHECKSUM, false);
    if (canary === null || checksum === null) return notChecked('whether checksum and canary are on is not known');
    const on = [...(checksum.value ? ['checksum'] : []), ...(canary.value === 'none' ? [] : ['canary'])];
    if (on.length === 0) return notApplicable('neither checksum nor canary is on');
    const kind = poolKindOf(node);
    if (kind?.value === 'plain') return passed('its model’s pool is a plain one');
    const seen: Observed = {
      title: `The ${on.join(' and ')} may not cover its model`,
      at: checksum.value ? checksum.source : canary.source,
      observed: kind === null ? 'a model whose pool is not known from its name' : `a model with a ${kind.value} pool`,
      wanted: 'a proof for this model',
      certain: false,
    };
    return failed(seen);
  },
};
