import { flagOf, signOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { unknownFlag, vllmIssue } from './shared.js';

export const contextFitted: Rule = {
  meta: {
    id: 'sources.context-fitted',
    group: 'sources',
    title: 'The context is whatever fitted at the start',
    severity: 'low',
    engines: ['vllm'],
    needs: ['flags', 'log'],
    why: 'With `--max-model-len auto` the context lands exactly on the pool: a concurrency of 1.00x is then a tautology, the boundary is where requests have hung, and the next start may advertise another length.',
    how: '`--max-model-len auto` (or -1), or the line `Auto-fit max_model_len: reduced from`.',
    change: 'Set `--max-model-len` to a figure at least 5 % below what the pool holds.',
    references: [vllmIssue(52520), vllmIssue(47272)],
    cwe: ['CWE-1188'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const flag = flagOf(node, 'max-model-len');
    const sign = signOf(node, 'context-auto-fitted');
    const auto = flag.state === 'set' && /^(?:auto|-1)$/i.test(flag.value ?? '');
    if (!auto && sign === null) {
      return flag.state === 'unknown'
        ? unknownFlag(node, 'max-model-len')
        : passed('the context is not fitted to the pool');
    }
    return failed({
      at: sign?.source ?? (flag.state === 'set' ? flag.source : null),
      observed: sign === null ? '`--max-model-len auto`' : 'the log says that the context was reduced to fit',
      wanted: 'a context that is set',
    });
  },
};
