import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { SGLANG_ARGUMENTS, apiReach, isShut, keySet, unknownFlag, unlessServing } from './shared.js';

export const adminKeyAlone: Rule = {
  meta: {
    id: 'exposure.admin-key-alone',
    group: 'exposure',
    title: 'An admin key alone leaves every ordinary route open',
    severity: 'high',
    engines: ['sglang'],
    needs: ['flags', 'manifest'],
    why: 'Inference, sessions and `/server_info` (which shows the admin key) ask for no key as long as `--api-key` is not set.',
    how: '`--admin-api-key` without `--api-key`.',
    change: 'Set `--api-key` beside `--admin-api-key`.',
    references: [SGLANG_ARGUMENTS],
    cwe: ['CWE-306', 'CWE-522'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const worker = unlessServing(node);
    if (worker !== null) return worker;
    const admin = keySet(node, 'admin-api-key');
    const api = keySet(node, 'api-key');
    if (admin === null) return unknownFlag(node, 'admin-api-key');
    if (!admin.value) return notApplicable('it has no admin key');
    if (api === null) return unknownFlag(node, 'api-key');
    if (api.value) return passed('both keys are set');
    const { reach, why } = apiReach(node);
    const severity = isShut(reach) ? 'low' : 'high';
    return failed({ severity, at: admin.source, observed: `only \`--admin-api-key\`; ${why}`, wanted: 'both keys' });
  },
};
