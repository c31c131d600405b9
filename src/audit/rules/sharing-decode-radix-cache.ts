import { signOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, type Rule, type RuleOutcome } from '../rule.js';
import { SGLANG_ARGUMENTS, unlessPaired, unwantedSwitch } from './shared.js';

const FLAG = 'disaggregation-decode-enable-radix-cache';

export const decodeRadixCache: Rule = {
  meta: {
    id: 'sharing.decode-radix-cache',
    group: 'sharing',
    title: 'Decode keeps prefixes, which its engine calls experimental',
    severity: 'low',
    engines: ['sglang'],
    needs: ['role', 'flags', 'log'],
    why: 'KV that arrived over the network goes into a cache that others read: what arrived wrong is then wrong for everybody with that prefix.',
    how: `\`--${FLAG}\`, or \`EXPERIMENTAL: Radix cache is enabled for decode server\` in the log.`,
    change: `Start decode without \`--${FLAG}\`.`,
    references: [SGLANG_ARGUMENTS],
    cwe: ['CWE-488'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    if (node.role !== 'decode') return notApplicable('it is no decode node');
    const sign = signOf(node, 'decode-radix-cache');
    if (sign !== null) return failed({ at: sign.source, observed: 'the log says so', wanted: 'off' });
    return unwantedSwitch(node, FLAG);
  },
};
