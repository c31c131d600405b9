import { best } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { llamaIssue } from './shared.js';

export const trainedContext: Rule = {
  meta: {
    id: 'capacity.trained-context',
    group: 'capacity',
    title: 'The model list shows a larger context than a slot takes',
    severity: 'info',
    engines: ['llamacpp'],
    needs: ['advertised'],
    why: 'Clients and gateways that read `n_ctx_train` of `/v1/models` send prompts that no slot takes.',
    how: '`meta.n_ctx_train` of `/v1/models` against `n_ctx` of `/props`.',
    change: 'Let clients read `n_ctx` of `/props`, or put a gateway in front that advertises what is served.',
    references: [llamaIssue(24124)],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const trained = best(node.contextTrained);
    const each = best(node.slots)?.value.contextEach ?? best(node.advertised)?.value ?? null;
    if (trained === null || each === null) return notChecked('the trained context or that of a slot is not known');
    if (trained.value <= each) return passed(`a slot takes ${each} tokens, trained ${trained.value}`);
    return failed({
      title: `The model list shows ${trained.value} tokens, a slot takes ${each}`,
      at: trained.source,
      observed: `n_ctx_train ${trained.value}, n_ctx ${each}`,
      wanted: 'one figure for clients',
    });
  },
};
