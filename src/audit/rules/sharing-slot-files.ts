import type { Fleet, NodeFacts } from '../facts.js';
import type { Rule, RuleOutcome } from '../rule.js';
import { cve, LLAMA_README, unwantedValue } from './shared.js';

export const slotFiles: Rule = {
  meta: {
    id: 'sharing.slot-files',
    group: 'sharing',
    title: 'Clients may save and restore slots by file name',
    severity: 'high',
    engines: ['llamacpp'],
    needs: ['flags'],
    why: 'Whoever has the one key can name another tenant’s saved slot; the files also lead to a heap overflow in builds b4882 to b9058.',
    how: '`--slot-save-path` is set.',
    change: 'Start without `--slot-save-path`, or keep `/slots` away from tenants.',
    references: [LLAMA_README, cve('CVE-2026-43629')],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-639'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    return unwantedValue(
      node,
      'slot-save-path',
      (value) => value !== '',
      () => ({ observed: '`--slot-save-path` is set', wanted: 'without it', certain: false }),
    );
  },
};
