import { variableOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { transferOf, unknownVariable, VLLM_SECURITY } from './shared.js';

export const hashSeed: Rule = {
  meta: {
    id: 'sharing.hash-seed',
    group: 'sharing',
    title: 'Hashes of the prefix cache begin with a seed that everybody can guess',
    severity: 'low',
    engines: ['vllm'],
    needs: ['variables'],
    why: '`PYTHONHASHSEED` fixes what is else drawn at random at each start, so hashes of blocks can be computed by anyone. Pools that are shared between instances need it; then a strong hash and secret salts must carry the isolation.',
    how: '`PYTHONHASHSEED` set to a number.',
    change:
      'Unset `PYTHONHASHSEED`; where a shared pool needs it, use a secret number and `--prefix-caching-hash-algo sha256_cbor`, and salt every request.',
    references: [VLLM_SECURITY],
    cwe: ['CWE-335'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const answer = variableOf(node, 'PYTHONHASHSEED');
    if (answer.state === 'unknown') return unknownVariable('PYTHONHASHSEED');
    if (answer.state === 'unset' || answer.value === 'random' || answer.value === '')
      return passed('it is drawn at each start');
    if (answer.value === null) return notChecked('`PYTHONHASHSEED` is set, to what is not known');
    const shared = transferOf(node) !== null;
    return failed({
      severity: shared ? 'info' : 'low',
      at: answer.source,
      observed: '`PYTHONHASHSEED` is fixed',
      wanted: shared ? 'a secret number, since a pool is shared' : 'unset',
    });
  },
};
