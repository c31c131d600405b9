import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { SGLANG_ARGUMENTS, unwantedSwitch } from './shared.js';

export const sessions: Rule = {
  meta: {
    id: 'sharing.sessions',
    group: 'sharing',
    title: 'Sessions are cached inside the engine, where their id is the only key',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['flags'],
    why: 'Who knows a session’s id continues another’s context; the engine knows no tenants.',
    how: '`--enable-session-radix-cache` on the command line or in `/server_info`.',
    change:
      'Start without `--enable-session-radix-cache`, and let the gateway refuse `session_id` and `session_params`.',
    references: [SGLANG_ARGUMENTS],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-639'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedSwitch(node, 'enable-session-radix-cache');
  },
};
