import { CLUSTER, OUTSIDE, POLICY, workload } from '../../../src/audit/rules/fixtures.js';
import { type CaseTable, D, P } from './case.js';

const KEY = { 'api-key': '(set)' } as const;
const NIXL = { connector: 'NixlConnector' } as const;
const LOCAL = '127.0.0.1:30000';
const SIDE = 'VLLM_NIXL_SIDE_CHANNEL_HOST';
const SIDE_PORT = 'VLLM_NIXL_SIDE_CHANNEL_PORT';
const router = { engine: 'sglang-router', role: 'router' } as const;

export const EXPOSURE_CASES: CaseTable = {
  'exposure.pair-reachable': {
    bad: ['critical', { role: D, exposure: OUTSIDE }],
    good: ['passed', { role: D, exposure: POLICY }],
    benign: ['passed', { role: D, exposure: OUTSIDE, listens: LOCAL }],
    more: [
      ['high', { role: P, exposure: CLUSTER }],
      ['critical', { role: P, exposure: workload({ hostNetwork: true }) }],
      ['critical', { engine: 'vllm', role: D, transfer: NIXL, exposure: OUTSIDE }],
      ['passed', { role: D, exposure: workload({ services: [{ type: 'published', loopback: true }] }) }],
      ['not-checked', { role: D, listens: '0.0.0.0:30000' }],
      ['not-applicable', { exposure: OUTSIDE }],
      ['critical', { engine: 'vllm', role: 'unknown', transfer: NIXL, exposure: OUTSIDE }],
      ['not-checked', { engine: 'vllm', role: 'single', transfer: NIXL, exposure: OUTSIDE }],
      ['not-applicable', { engine: 'vllm', role: 'router', transfer: NIXL, exposure: OUTSIDE }],
      ['not-applicable', { engine: 'vllm', exposure: OUTSIDE }],
    ],
  },
  'exposure.keys-in-clear': {
    bad: [
      'critical',
      { flags: { 'admin-api-key': '(set)' }, keysShown: ['admin_api_key'], routes: { '/server_info': 200 } },
    ],
    good: ['passed', { flags: KEY, keysShown: ['api_key'], exposure: POLICY, routes: { '/server_info': 401 } }],
    benign: ['not-applicable', { flags: {}, routes: { '/server_info': 200 } }],
    more: [
      ['medium', { flags: { ...KEY, host: '0.0.0.0' }, exposure: OUTSIDE }],
      ['high', { flags: { 'admin-api-key': '(set)', host: '0.0.0.0' }, exposure: CLUSTER }],
      ['not-checked', { flags: { ...KEY, host: '0.0.0.0' } }],
    ],
  },
  'exposure.mini-lb': {
    bad: ['high', { engine: 'sglang-mini-lb', role: 'router' }],
    good: ['passed', { ...router, flags: {} }],
    benign: ['passed', { ...router, flags: { 'mini-lb': 'false' } }],
    more: [['high', { ...router, flags: { 'mini-lb': 'true' } }]],
  },
  'exposure.router-open': {
    bad: ['critical', { ...router, flags: {}, exposure: OUTSIDE }],
    good: ['passed', { ...router, flags: KEY, exposure: OUTSIDE }],
    benign: ['low', { ...router, flags: { host: '127.0.0.1' } }],
    more: [
      ['high', { ...router, flags: {} }],
      ['critical', { ...router, routes: { '/workers': 200 } }],
      ['passed', { ...router, flags: KEY, routes: { '/workers': 401 } }],
      ['not-checked', { ...router }],
    ],
  },
  'exposure.transfer-params-pass': {
    bad: ['critical', { engine: 'vllm', role: D, transfer: NIXL, exposure: OUTSIDE }],
    good: [
      'passed',
      { engine: 'vllm', role: D, transfer: NIXL, exposure: POLICY },
      { engine: 'cofferdam', role: 'router' },
    ],
    benign: ['not-applicable', { engine: 'vllm', flags: {}, exposure: OUTSIDE }],
    more: [
      ['high', { engine: 'vllm', role: D, transfer: NIXL }, { engine: 'vllm-router', role: 'router' }],
      ['high?', { engine: 'vllm', role: D, transfer: NIXL }, { engine: 'llmd-sidecar', role: 'router' }],
      ['not-checked', { engine: 'vllm', role: D, transfer: NIXL, exposure: POLICY }],
    ],
  },
  'exposure.no-key': {
    bad: ['high', { flags: { host: '0.0.0.0' }, exposure: OUTSIDE }],
    good: ['passed', { flags: { ...KEY, host: '0.0.0.0' }, exposure: OUTSIDE }],
    benign: ['passed', { flags: {} }],
    more: [
      ['medium', { flags: { host: '0.0.0.0' } }],
      ['medium', { flags: { host: '0.0.0.0' }, exposure: CLUSTER }],
      ['passed', { flags: { host: '0.0.0.0' }, exposure: POLICY }],
      ['passed', { engine: 'vllm', flags: {}, vars: { VLLM_API_KEY: null } }],
      ['not-checked', { engine: 'vllm', flags: {} }],
      ['medium', { engine: 'vllm', flags: {}, vars: {} }],
      ['medium', { engine: 'vllm', routes: { '/v1/models': 200 } }],
      ['not-checked', { engine: 'vllm', routes: { '/v1/models': 401 } }],
    ],
  },
  'exposure.admin-key-alone': {
    bad: ['high', { flags: { 'admin-api-key': '(set)', host: '0.0.0.0' } }],
    good: ['passed', { flags: { 'admin-api-key': '(set)', ...KEY } }],
    benign: ['not-applicable', { flags: KEY }],
    more: [['low', { flags: { 'admin-api-key': '(set)' } }]],
  },
  'exposure.open-routes': {
    bad: ['high', { engine: 'vllm', flags: KEY, exposure: OUTSIDE }],
    good: ['passed', { engine: 'vllm', flags: KEY, exposure: POLICY }],
    benign: ['not-applicable', { engine: 'vllm', flags: {}, vars: {}, exposure: OUTSIDE }],
    more: [
      ['medium', { flags: { ...KEY, host: '0.0.0.0' }, exposure: CLUSTER }],
      ['not-checked', { engine: 'vllm', flags: KEY }],
    ],
  },
  'exposure.bound-to-all': {
    bad: ['medium', { flags: { host: '0.0.0.0' } }],
    good: ['passed', { flags: {} }],
    // A pod must bind its own address; the policy is the border.
    benign: ['passed', { listens: '0.0.0.0:30000', exposure: POLICY }],
    more: [
      ['low', { flags: { host: '::', ...KEY } }],
      ['not-applicable', { flags: { host: '0.0.0.0' }, exposure: OUTSIDE }],
      ['medium', { engine: 'vllm', flags: {} }],
      ['not-checked', {}],
    ],
  },
  'exposure.bootstrap-port': {
    bad: ['critical', { role: P, flags: { host: '0.0.0.0' }, exposure: OUTSIDE }],
    good: ['passed', { role: P, flags: { host: '0.0.0.0' }, exposure: POLICY }],
    benign: [
      'medium',
      {
        role: P,
        flags: { host: '0.0.0.0' },
        exposure: workload({ services: [{ type: 'load-balancer', ports: [30000] }] }),
      },
    ],
    more: [
      ['passed', { role: P, flags: {}, exposure: OUTSIDE }],
      ['not-applicable', { role: D, flags: {}, exposure: OUTSIDE }],
      ['not-checked', { role: P, flags: { host: '0.0.0.0' } }],
    ],
  },
  'exposure.side-channel': {
    bad: ['high', { engine: 'vllm', transfer: NIXL, vars: { [SIDE]: '0.0.0.0' }, exposure: OUTSIDE }],
    good: ['passed', { engine: 'vllm', transfer: NIXL, vars: { [SIDE]: '0.0.0.0' }, exposure: POLICY }],
    benign: ['passed', { engine: 'vllm', transfer: NIXL, vars: {}, exposure: OUTSIDE }],
    more: [
      ['not-checked', { engine: 'vllm', transfer: NIXL, vars: { [SIDE]: null } }],
      [
        'not-checked',
        { engine: 'vllm', transfer: NIXL, vars: { [SIDE]: '0.0.0.0', [SIDE_PORT]: null }, exposure: OUTSIDE },
      ],
      [
        'medium',
        {
          engine: 'vllm',
          transfer: NIXL,
          vars: { [SIDE]: '10.0.0.3', [SIDE_PORT]: '5700' },
          exposure: workload({ services: [{ type: 'load-balancer', ports: [5600] }] }),
        },
      ],
    ],
  },
  'exposure.transfer-port': {
    bad: ['high', { engine: 'vllm', transfer: { connector: 'P2pNcclConnector', ip: '0.0.0.0' }, exposure: OUTSIDE }],
    good: ['passed', { engine: 'vllm', transfer: { connector: 'P2pNcclConnector', ip: '0.0.0.0' }, exposure: POLICY }],
    benign: ['passed', { engine: 'vllm', transfer: { connector: 'P2pNcclConnector' }, exposure: OUTSIDE }],
    more: [['not-applicable', { engine: 'vllm', transfer: NIXL, exposure: OUTSIDE }]],
  },
  'exposure.message-ports': {
    bad: ['high', { flags: { 'grpc-port': '50051' }, exposure: OUTSIDE }],
    good: ['passed', { flags: { 'grpc-port': '50051' }, exposure: POLICY }],
    benign: ['not-applicable', { flags: { 'dist-init-addr': '127.0.0.1:5000' }, exposure: OUTSIDE }],
    more: [
      ['medium', { flags: { 'kv-events-config': '{"publisher":"zmq","endpoint":"tcp://*:5557"}' }, exposure: CLUSTER }],
      ['not-checked', { flags: { 'dist-init-addr': '10.0.0.2:5000' } }],
    ],
  },
  'exposure.cache-ports': {
    bad: ['critical', { engine: 'lmcache', exposure: OUTSIDE }],
    good: ['passed', { engine: 'mooncake', exposure: POLICY }],
    benign: ['passed', { engine: 'lmcache', flags: { host: 'localhost' }, exposure: OUTSIDE }],
    more: [
      ['high', { engine: 'mooncake', exposure: CLUSTER }],
      [
        'critical',
        {
          engine: 'lmcache',
          exposure: workload({ services: [{}, { type: 'node-port', ports: [9000] }], ports: [{ number: 9000 }] }),
        },
      ],
      ['not-checked', { engine: 'mooncake' }],
    ],
  },
  'exposure.cache-api': {
    bad: [
      'high?',
      {
        engine: 'vllm',
        transfer: { connector: 'LMCacheMPConnector' },
        vars: { LMCACHE_INTERNAL_API_SERVER_ENABLED: 'true' },
      },
    ],
    good: ['passed', { engine: 'vllm', transfer: { connector: 'LMCacheMPConnector' }, vars: {} }],
    benign: [
      'not-applicable',
      { engine: 'vllm', transfer: NIXL, vars: { LMCACHE_INTERNAL_API_SERVER_ENABLED: 'true' } },
    ],
  },
  'exposure.header-overrides': {
    bad: ['high', { vars: { SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES: '1' } }],
    good: ['passed', { vars: {} }],
    benign: ['passed', { vars: { SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES: 'False' } }],
    more: [['not-checked', { vars: { SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES: null } }]],
  },
  'exposure.compressed-bodies': {
    bad: ['low', { vars: { SGLANG_ENABLE_REQUEST_DECOMPRESSION: '1' } }],
    good: ['passed', { vars: {} }],
    benign: ['passed', { vars: { SGLANG_ENABLE_REQUEST_DECOMPRESSION: '0' } }],
  },
  'exposure.logit-processor': {
    bad: ['critical', { flags: { 'enable-custom-logit-processor': 'true' } }],
    good: ['passed', { flags: {} }],
    benign: ['passed', { flags: { 'enable-custom-logit-processor': 'false' } }],
    more: [['not-checked', { flags: { port: '1' }, partFlags: true }]],
  },
  'exposure.request-logs': {
    bad: ['low', { flags: { 'log-requests': 'true' } }],
    good: ['passed', { flags: {} }],
    benign: ['passed', { flags: { 'log-requests': 'true', 'log-requests-level': '0' } }],
    more: [
      ['low', { flags: { 'crash-dump-folder': '/dumps' } }],
      ['low', { engine: 'llamacpp', flags: { 'log-prompts-dir': '/p' } }],
      ['not-checked', { engine: 'vllm' }],
    ],
  },
  'exposure.dev-mode': {
    bad: ['high', { engine: 'vllm', vars: { VLLM_SERVER_DEV_MODE: '1' } }],
    good: ['passed', { engine: 'vllm', vars: {} }],
    benign: ['passed', { engine: 'vllm', routes: { '/server_info': 404 } }],
    more: [
      ['high', { engine: 'vllm', routes: { '/server_info': 200 } }],
      ['not-checked', { engine: 'vllm', log: true }],
    ],
  },
  'exposure.slots-shown': {
    bad: ['medium', { engine: 'llamacpp', routes: { '/slots': 200 } }],
    good: ['passed', { engine: 'llamacpp', flags: { slots: 'false' } }],
    benign: ['passed', { engine: 'llamacpp', flags: {} }],
    more: [
      ['medium', { engine: 'llamacpp', signs: ['no-key-any-origin'] }],
      ['low', { engine: 'llamacpp', flags: { host: '0.0.0.0' } }],
    ],
  },
  'exposure.request-templates': {
    bad: ['medium', { engine: 'vllm', flags: { 'trust-request-chat-template': 'true' } }],
    good: ['passed', { engine: 'vllm', flags: {} }],
    benign: ['passed', { flags: { 'chat-template': 'file.jinja' } }],
  },
  'exposure.control-plane': {
    bad: ['critical', { engine: 'nats', role: 'unknown', flags: {}, exposure: OUTSIDE }],
    good: ['passed', { engine: 'etcd', role: 'unknown', flags: {}, exposure: POLICY }],
    benign: ['passed', { engine: 'etcd', role: 'unknown', flags: { 'client-cert-auth': 'true' }, exposure: CLUSTER }],
    more: [
      ['high', { engine: 'etcd', role: 'unknown', flags: {}, exposure: CLUSTER }],
      ['passed', { engine: 'nats', role: 'unknown', flags: { user: '(set)' }, exposure: CLUSTER }],
      ['not-checked', { engine: 'nats', role: 'unknown', flags: { config: '/etc/nats.conf' }, exposure: CLUSTER }],
      ['not-checked', { engine: 'etcd', role: 'unknown', exposure: CLUSTER }],
      ['not-checked', { engine: 'etcd', role: 'unknown', flags: {} }],
    ],
  },
  'exposure.picker-fails-open': {
    bad: ['medium', { engine: 'llmd-epp', role: 'router', flags: { 'pool-failure-mode': 'FailOpen' } }],
    good: ['passed', { engine: 'llmd-epp', role: 'router', flags: { 'pool-failure-mode': 'FailClose' } }],
    // Every flag is known, and no InferencePool is among the manifests.
    benign: ['not-checked', { engine: 'llmd-epp', role: 'router', flags: {} }],
  },
  'exposure.prefill-allow-list': {
    bad: ['high', { engine: 'llmd-sidecar', role: 'router', flags: {} }],
    good: ['passed', { engine: 'llmd-sidecar', role: 'router', flags: { 'enable-ssrf-protection': 'true' } }],
    benign: ['not-checked', { engine: 'llmd-sidecar', role: 'router' }],
  },
  'exposure.token-routes': {
    bad: ['low', { engine: 'vllm', flags: { 'enable-scale-out': 'true' } }],
    good: ['passed', { engine: 'vllm', flags: {} }],
    benign: ['passed', { engine: 'vllm', flags: { 'enable-scale-out': 'false' } }],
  },
  'exposure.role-switch': {
    bad: ['low', { flags: { 'enable-pd-role-switch': 'true' } }],
    good: ['passed', { flags: {} }],
    benign: ['passed', { flags: { 'enable-pd-role-switch': 'false' } }],
  },
  'exposure.any-origin': {
    bad: ['low', { routes: { '/v1/models': 200 }, anyOrigin: true }],
    good: ['passed', { routes: { '/v1/models': 200 } }],
    benign: ['info', { routes: { '/v1/models': 401 }, anyOrigin: true }],
  },
};
