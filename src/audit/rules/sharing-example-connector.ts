import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { connectorsOf, noTransfer, transferOf } from './shared.js';

const CONNECTOR = /^(?:ExampleConnector|SharedStorageConnector)$/;

export const exampleConnector: Rule = {
  meta: {
    id: 'sharing.example-connector',
    group: 'sharing',
    title: 'vLLM’s example connector shares KV across salts, as plain files',
    severity: 'high',
    engines: ['vllm'],
    needs: ['transfer-config'],
    why: 'It names its files by a hash of the token ids and ignores `cache_salt`: on 0.32.0 a tenant with another salt got 512 of 600 tokens from the first tenant’s files.',
    how: '`ExampleConnector` or `SharedStorageConnector` in `--kv-transfer-config`, alone or inside a `MultiConnector`.',
    change:
      'Use a connector whose keys hold the salt (`MooncakeStoreConnector`, `LMCacheMPConnector`) in `--kv-transfer-config`, and delete the files.',
    references: ['https://docs.vllm.ai/en/stable/api/vllm/config/kv_transfer/'],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-488', 'CWE-312'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    const found = connectorsOf(transfer.value).find((name) => CONNECTOR.test(name));
    if (found === undefined) return passed(`its connector is ${transfer.value.connector}`);
    return failed({ at: transfer.source, observed: found, wanted: 'a connector that knows salts' });
  },
};
