import { type CaseTable, D, P } from './case.js';

export const SHARING_CASES: CaseTable = {
  'sharing.prefix-cache-unsalted': {
    bad: ['info?', { role: P, flags: {} }],
    good: ['passed', { role: P, flags: { 'disable-radix-cache': 'true' } }],
    benign: ['not-applicable', { role: D, flags: {} }],
    more: [
      ['passed', { engine: 'vllm', flags: { 'enable-prefix-caching': 'false' } }],
      ['info?', { engine: 'vllm', flags: {} }],
      ['passed', { engine: 'vllm', flags: {} }, { engine: 'cofferdam', role: 'router' }],
      ['not-checked', { engine: 'vllm' }],
    ],
  },
  'sharing.storage-ignores-salt': {
    bad: ['high', { version: '0.5.19', flags: { 'hicache-storage-backend': 'mooncake' } }],
    good: ['passed', { version: '0.5.21', flags: { 'hicache-storage-backend': 'mooncake' } }],
    benign: ['not-applicable', { version: '0.5.19', flags: { 'enable-hierarchical-cache': 'true' } }],
    more: [
      ['high?', { version: '0.5.20', flags: { 'hicache-storage-backend': 'file' } }],
      ['not-checked', { flags: { 'hicache-storage-backend': 'file' } }],
    ],
  },
  'sharing.flexkv': {
    bad: ['high', { version: '0.5.23', flags: { 'enable-flexkv': 'true' } }],
    good: ['passed', { flags: {} }],
    benign: ['passed', { flags: { 'enable-flexkv': 'false' } }],
  },
  'sharing.lmcache-salt': {
    bad: ['high', { version: '0.5.19', flags: { 'enable-lmcache': 'true' } }],
    good: ['passed', { version: '0.5.19', flags: {} }],
    benign: ['passed', { flags: { 'enable-lmcache': 'false' } }],
    more: [['info?', { version: '0.5.22', flags: { 'enable-lmcache': 'true' } }]],
  },
  'sharing.example-connector': {
    bad: ['high', { engine: 'vllm', transfer: { connector: 'MultiConnector', inner: ['ExampleConnector'] } }],
    good: ['passed', { engine: 'vllm', transfer: { connector: 'NixlConnector' } }],
    benign: ['passed', { engine: 'vllm', transfer: { connector: 'MyExampleConnectorWithSalts' } }],
    more: [['high', { engine: 'vllm', transfer: { connector: 'SharedStorageConnector' } }]],
  },
  'sharing.lmcache-in-process': {
    bad: [
      'high?',
      { engine: 'vllm', transfer: { connector: 'LMCacheConnectorV1' }, vars: { LMCACHE_LOCAL_DISK: '/kv' } },
    ],
    good: ['passed', { engine: 'vllm', transfer: { connector: 'NixlConnector' } }],
    benign: ['passed', { engine: 'vllm', transfer: { connector: 'LMCacheMPConnector' } }],
    more: [['medium?', { engine: 'vllm', transfer: { connector: 'LMCacheConnectorV1' }, vars: {} }]],
  },
  'sharing.hash-weak': {
    bad: ['medium', { engine: 'vllm', version: '0.32.0', flags: { 'prefix-caching-hash-algo': 'xxhash' } }],
    good: ['passed', { engine: 'vllm', flags: { 'prefix-caching-hash-algo': 'sha256_cbor' } }],
    benign: ['passed', { engine: 'vllm', flags: {} }],
    more: [['high', { engine: 'vllm', version: '0.7.1', flags: { 'prefix-caching-hash-algo': 'builtin' } }]],
  },
  'sharing.hash-seed': {
    bad: ['low', { engine: 'vllm', vars: { PYTHONHASHSEED: '0' } }],
    good: ['passed', { engine: 'vllm', vars: {} }],
    benign: ['passed', { engine: 'vllm', vars: { PYTHONHASHSEED: 'random' } }],
    more: [
      ['info', { engine: 'vllm', transfer: { connector: 'MooncakeStoreConnector' }, vars: { PYTHONHASHSEED: '0' } }],
    ],
  },
  'sharing.cached-tokens-shown': {
    bad: ['medium', { engine: 'vllm', flags: { 'enable-per-request-metrics': 'true' } }],
    good: ['passed', { engine: 'vllm', flags: {} }],
    benign: ['passed', { flags: { 'enable-cache-report': 'false' } }],
    more: [
      ['low', { flags: { 'enable-cache-report': 'true' } }],
      ['not-checked', { engine: 'vllm' }],
    ],
  },
  'sharing.sessions': {
    bad: ['medium', { flags: { 'enable-session-radix-cache': 'true' } }],
    good: ['passed', { flags: {} }],
    benign: ['passed', { flags: { 'enable-session-radix-cache': 'false' } }],
  },
  'sharing.prompt-cache': {
    bad: ['high?', { engine: 'llamacpp', flags: {} }],
    good: ['passed', { engine: 'llamacpp', flags: { 'cache-ram': '0', 'cache-prompt': 'false' } }],
    benign: ['not-checked', { engine: 'llamacpp' }],
    more: [['medium', { engine: 'llamacpp', flags: { 'cache-ram': '0' } }]],
  },
  'sharing.slot-files': {
    bad: ['high?', { engine: 'llamacpp', flags: { 'slot-save-path': '/slots' } }],
    good: ['passed', { engine: 'llamacpp', flags: {} }],
    benign: ['passed', { engine: 'llamacpp', flags: { slots: 'true' } }],
  },
  'sharing.store-tenants': {
    bad: ['low?', { engine: 'mooncake', flags: { 'rpc-port': '50051' } }],
    good: ['passed', { engine: 'mooncake', flags: { 'enable-multi-tenants': 'true' } }],
    benign: ['not-applicable', { engine: 'mooncake', flags: { 'metadata-server': 'http://m/metadata' } }],
  },
  'sharing.decode-radix-cache': {
    bad: ['low', { role: D, flags: { 'disaggregation-decode-enable-radix-cache': 'true' } }],
    good: ['passed', { role: D, flags: {} }],
    benign: ['not-applicable', { role: P, flags: {} }],
    more: [['low', { role: D, signs: ['decode-radix-cache'] }]],
  },
  'sharing.outer-tiers': {
    bad: ['info', { flags: { 'enable-hierarchical-cache': 'true' } }],
    good: ['passed', { flags: {} }],
    benign: ['passed', { flags: { 'enable-hierarchical-cache': 'false' } }],
  },
  'sharing.one-key': {
    bad: ['info', { engine: 'sglang-router', role: 'router', flags: { 'api-key': '(set)' } }],
    good: ['not-applicable', { engine: 'sglang-router', role: 'router', flags: {} }],
    benign: ['not-checked', { engine: 'sglang-router', role: 'router' }],
  },
};
