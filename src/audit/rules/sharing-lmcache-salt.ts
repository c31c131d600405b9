import { atLeast, before, switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag, unknownVersion } from './shared.js';

export const lmcacheSalt: Rule = {
  meta: {
    id: 'sharing.lmcache-salt',
    group: 'sharing',
    title: 'LMCache is not given the salt',
    severity: 'high',
    engines: ['sglang'],
    needs: ['version', 'flags'],
    why: 'Before 0.5.21 salt and extra key do not reach LMCache; from then on they do, and what it does with them is its own matter.',
    how: '`--enable-lmcache`, and the version.',
    change:
      'Upgrade to SGLang 0.5.22 and prove with `cofferdam probe` that two salts share nothing, or start without `--enable-lmcache`.',
    references: [sglangIssue(26747), sglangIssue(37160)],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-488'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const on = switchOf(node, 'enable-lmcache', false);
    if (on === null) return unknownFlag(node, 'enable-lmcache');
    if (!on.value) return passed('`--enable-lmcache` is off');
    const passes = atLeast(node, '0.5.21');
    if (passes === null) return unknownVersion(node);
    const observed = `\`--enable-lmcache\` on SGLang ${node.version?.text}`;
    const wanted = 'a proof that two salts share nothing';
    if (passes) {
      const title = 'LMCache is given the salt, and what it does with it is not established';
      return failed({ severity: 'info', title, at: on.source, observed, wanted, certain: false });
    }
    return failed({ at: on.source, observed, wanted, certain: before(node, '0.5.20.dev0') === true });
  },
};
