import { switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag } from './shared.js';

const TIERS = [
  'enable-hierarchical-cache',
  'enable-unified-cache-external-linker',
  'enable-unified-memory',
  'enable-hisparse',
  'disaggregation-decode-enable-offload-kvcache',
];

export const outerTiers: Rule = {
  meta: {
    id: 'sharing.outer-tiers',
    group: 'sharing',
    title: 'KV also lives outside the GPU’s pool',
    severity: 'info',
    engines: ['sglang'],
    needs: ['flags'],
    why: 'Each tier has its own history of wrong content on the way back, and neither checksum nor canary looks at what a tier gives back.',
    how: 'Switches of tiers on the command line or in `/server_info`.',
    change: 'Keep the tiers that are needed, drop the others’ switches, and probe across eviction and restart.',
    references: [sglangIssue(27504), sglangIssue(38480), sglangIssue(32476)],
    cwe: ['CWE-354'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const said = TIERS.map((name) => ({ name, on: switchOf(node, name, false) }));
    const on = said.filter((one) => one.on?.value === true);
    if (on.length > 0) {
      const observed = on.map(({ name }) => `\`--${name}\``).join(', ');
      return failed({ at: on[0]?.on?.source ?? null, observed, wanted: 'only tiers that are needed' });
    }
    const open = said.find((one) => one.on === null);
    return open === undefined ? passed('no tier is on') : unknownFlag(node, open.name);
  },
};
