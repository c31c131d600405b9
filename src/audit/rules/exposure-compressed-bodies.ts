import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { SGLANG_ARGUMENTS, unwantedVariables } from './shared.js';

export const compressedBodies: Rule = {
  meta: {
    id: 'exposure.compressed-bodies',
    group: 'exposure',
    title: 'The engine unpacks compressed requests that a gateway may not have looked into',
    severity: 'low',
    engines: ['sglang'],
    needs: ['variables'],
    why: 'A gateway that reads only plain bodies passes fields on that it should refuse, and bounds bytes that then grow.',
    how: '`SGLANG_ENABLE_REQUEST_DECOMPRESSION` in the environment.',
    change: 'Unset `SGLANG_ENABLE_REQUEST_DECOMPRESSION`, or refuse `content-encoding` at the edge.',
    references: [SGLANG_ARGUMENTS],
    cwe: ['CWE-409'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedVariables(node, ['SGLANG_ENABLE_REQUEST_DECOMPRESSION'], null);
  },
};
