import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { SGLANG_ARGUMENTS, unwantedSwitch } from './shared.js';

export const flexkv: Rule = {
  meta: {
    id: 'sharing.flexkv',
    group: 'sharing',
    title: 'FlexKV is given token ids only and shares KV across salts',
    severity: 'high',
    engines: ['sglang'],
    needs: ['flags'],
    why: 'Salt and extra key are not passed on to it in any version read, 0.5.23 included: tenants share its tier whatever the requests say.',
    how: '`--enable-flexkv` on the command line or in `/server_info`.',
    change: 'Start without `--enable-flexkv` where tenants share a server.',
    references: [SGLANG_ARGUMENTS],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-488', 'CWE-653'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedSwitch(node, 'enable-flexkv');
  },
};
