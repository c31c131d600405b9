import { samplesOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { vllmIssue } from './shared.js';

export const queueBlocked: Rule = {
  meta: {
    id: 'release.queue-blocked',
    group: 'release',
    title: 'A request waits for room in an empty pool, with everyone behind it',
    severity: 'high',
    engines: ['vllm'],
    needs: ['metrics'],
    why: 'A prompt that the context allows and the pool can never hold is not refused: it waits for ever at the head of the queue. Health checks stay green.',
    how: '`vllm:num_requests_waiting_by_reason{reason="capacity"}` above zero while `vllm:kv_cache_usage_perc` and `vllm:num_requests_running` are 0 on the same engine.',
    change: 'Abort that request, and lower `--max-model-len` below the pool.',
    references: [vllmIssue(39734), vllmIssue(52520), 'https://github.com/RBLN-SW/vllm-rbln/issues/957'],
    cwe: ['CWE-770', 'CWE-835'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const waiting = samplesOf(node, 'vllm:num_requests_waiting_by_reason', { reason: 'capacity' });
    if (waiting.length === 0) {
      return notChecked(node.metricsRead ? 'its metrics give no reason for waiting' : 'its metrics were not read');
    }
    for (const sample of waiting) {
      const { engine } = sample.labels;
      const same = (name: string): number | null =>
        samplesOf(node, name, engine === undefined ? {} : { engine })[0]?.value ?? null;
      const usage = same('vllm:kv_cache_usage_perc');
      if (sample.value > 0 && usage === null) return notChecked('its metrics do not tell how full the pool is');
      if (sample.value > 0 && usage === 0 && same('vllm:num_requests_running') === 0) {
        return failed({
          at: sample.source,
          observed: `${sample.value} waiting for capacity, pool use 0, none running`,
          wanted: 'none waiting while the pool is empty',
          certain: false,
        });
      }
    }
    return passed('nobody waits for room in an empty pool');
  },
};
