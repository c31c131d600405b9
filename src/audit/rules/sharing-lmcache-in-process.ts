import { variableOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { isActive, lmcacheIssue, hasConnector, noTransfer, transferOf } from './shared.js';

export const lmcacheInProcess: Rule = {
  meta: {
    id: 'sharing.lmcache-in-process',
    group: 'sharing',
    title: 'LMCache inside the engine’s process has answered with other sessions’ content',
    severity: 'high',
    engines: ['vllm'],
    needs: ['transfer-config', 'variables'],
    why: 'A public report (LMCache 0.5.2 with vLLM 0.26.0) got other sessions’ planted facts from returning sessions over its local-disk path; the multiprocess mode was clean in 221 of 221. It was open when last seen.',
    how: '`LMCacheConnectorV1` in `--kv-transfer-config`; graver with `LMCACHE_LOCAL_DISK`.',
    change: 'Use `LMCacheMPConnector` with a separate LMCache server, and unset `LMCACHE_LOCAL_DISK`.',
    references: [lmcacheIssue(4385), lmcacheIssue(4463), lmcacheIssue(4870)],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-488'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    if (!hasConnector(transfer.value, /^LMCacheConnectorV1/))
      return passed(`its connector is ${transfer.value.connector}`);
    const disk = variableOf(node, 'LMCACHE_LOCAL_DISK');
    const onDisk = disk.state === 'set' && (disk.value === null || isActive(disk.value));
    return failed({
      severity: onDisk ? 'high' : 'medium',
      at: onDisk ? disk.source : transfer.source,
      observed: onDisk ? 'LMCacheConnectorV1 with a local disk' : 'LMCacheConnectorV1',
      wanted: 'LMCache in a process of its own',
      certain: false,
    });
  },
};
