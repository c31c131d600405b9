import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, passed, type Rule, type RuleOutcome } from '../rule.js';
import { VLLM_SECURITY, apiReach, hostOf, isShut, keySet, unknownFlag, unlessServing } from './shared.js';

const ALL = /^(?:0\.0\.0\.0|::|\[::\]|\*)$/;

export const boundToAll: Rule = {
  meta: {
    id: 'exposure.bound-to-all',
    group: 'exposure',
    title: 'The node listens on every interface, and nothing says who reaches it',
    severity: 'medium',
    engines: ['sglang', 'vllm', 'llamacpp', 'sglang-router', 'sglang-mini-lb', 'vllm-router'],
    needs: ['flags', 'manifest'],
    why: 'The engine’s border is then that of the network. On SGLang’s prefill the bootstrap service is bound with it.',
    how: '`--host 0.0.0.0` or `::` (the default of vLLM and of routers), and no manifest that says who reaches it.',
    change: 'Bind `--host 127.0.0.1` or one inner address; in a cluster add a NetworkPolicy that lets only peers in.',
    references: [VLLM_SECURITY],
    cwe: ['CWE-1327'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const worker = unlessServing(node);
    if (worker !== null) return worker;
    const host = hostOf(node);
    if (host === null) return unknownFlag(node, 'host');
    if (!ALL.test(host.value)) return passed(`it listens on ${host.value}`);
    const { reach, why } = apiReach(node);
    if (isShut(reach)) return passed(why);
    // A pod has to bind its own address. Who reaches it is then known, and other rules judge that.
    if (reach !== 'unknown') return notApplicable(`its manifests say who reaches it: ${why}`);
    const keyed = keySet(node, 'api-key')?.value === true;
    return failed({
      severity: keyed ? 'low' : 'medium',
      at: host.source,
      observed: `it listens on ${host.value}; ${why}`,
      wanted: 'loopback, one inner address, or a policy',
    });
  },
};
