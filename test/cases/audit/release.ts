import { type CaseTable, D, P } from './case.js';

const DEFERRED = 'SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE';
const CAP = 'SGLANG_MOONCAKE_MAX_TRANSFER_BATCH_INDICES';
const WAIT = 'SGLANG_DISAGGREGATION_WAITING_TIMEOUT';
const LEASE = 'VLLM_NIXL_ABORT_REQUEST_TIMEOUT';
const NIXL = { connector: 'NixlConnector' } as const;
const backend = (name: string): { readonly 'disaggregation-transfer-backend': string } => ({
  'disaggregation-transfer-backend': name,
});

export const RELEASE_CASES: CaseTable = {
  'rejection.prefill-fallback': {
    bad: ['high?', { engine: 'llmd-sidecar', role: 'router', version: '0.8.0' }],
    good: ['passed', { engine: 'llmd-sidecar', role: 'router', version: '0.10.0' }],
    benign: ['passed', { engine: 'llmd-sidecar', role: 'router', version: '0.9.0rc1' }],
    more: [['not-checked', { engine: 'llmd-sidecar', role: 'router' }]],
  },
  'release.cancel-not-passed': {
    bad: ['medium', { engine: 'dynamo', role: 'router', version: '1.4.1' }],
    good: ['not-checked', { engine: 'dynamo', role: 'router', version: '1.6.1' }],
    benign: ['not-checked', { engine: 'dynamo', role: 'router', version: '1.4.10' }],
    more: [['not-checked', { engine: 'dynamo', role: 'router' }]],
  },
  'rejection.handed-off': {
    bad: ['critical', { role: P, version: '0.5.18' }],
    good: ['passed', { role: P, version: '0.5.22' }],
    benign: ['not-applicable', { version: '0.5.18' }],
    more: [
      ['critical', { role: D, version: '0.5.19' }],
      ['critical', { role: D, version: '0.5.19.post1' }],
      ['critical', { role: P, version: '0.4.6' }],
      // A nightly of 0.5.20 is newer than 0.5.19, and holds nobody knows what.
      ['high?', { role: P, version: '0.5.20.dev20260910+g0123abc' }],
      ['high?', { role: P, version: '0.5.20' }],
      ['high?', { role: P, version: '0.5.21.dev20260930+g0123abc' }],
      ['medium', { role: P, version: '0.5.21' }],
      ['medium', { role: D, version: '0.5.22.dev20261005+g0123abc' }],
      ['medium', { role: D, version: '0.5.22rc1' }],
      ['passed', { role: D, version: '0.5.23' }],
      ['not-checked', { role: P }],
      ['not-checked', { role: 'unknown', version: '0.5.18' }],
    ],
  },
  'rejection.decode-not-told': {
    bad: ['high', { role: P, limit: 993, version: '0.5.23' }, { role: D, limit: 1993 }],
    good: ['passed', { role: P, limit: 993 }, { role: D, limit: 993 }],
    benign: ['passed', { role: P, limit: 1993 }, { role: D, limit: 993 }],
    more: [
      ['not-checked', { role: P }, { role: D, limit: 993 }],
      ['not-checked', { role: P, limit: 993 }],
      ['not-applicable', { role: D, limit: 1993 }, { role: P, limit: 993 }],
    ],
  },
  'release.nixl-mori': {
    bad: ['high', { role: D, version: '0.5.22', flags: backend('nixl') }],
    good: ['passed', { role: D, version: '0.5.23', flags: backend('mori') }],
    benign: ['not-applicable', { role: D, version: '0.5.22', flags: {} }],
    more: [
      ['high', { role: D, version: '0.5.23.dev20261020+gabc', flags: backend('nixl') }],
      ['not-checked', { role: D, version: '0.5.22' }],
    ],
  },
  'release.backend-without-drain': {
    bad: ['medium', { role: D, version: '0.5.21', flags: backend('mori') }],
    good: ['passed', { role: D, version: '0.5.22', flags: backend('mori') }],
    benign: ['passed', { role: D, version: '0.5.21', flags: backend('ascend') }],
    more: [
      // 0.5.18 acknowledges without having drained, and cannot defer: it is never found to confirm.
      ['not-applicable', { role: D, version: '0.5.18', flags: {} }],
      ['not-checked', { role: D, flags: {} }],
      ['passed', { role: D, version: '0.5.19', flags: {} }],
      ['not-checked', { role: D, version: '0.5.23', flags: backend('unheard-of') }],
    ],
  },
  'release.fake-backend': {
    bad: ['critical', { role: D, flags: backend('fake') }],
    good: ['passed', { role: D, flags: {} }],
    benign: ['not-applicable', { flags: backend('fake') }],
    more: [['not-checked', { role: D, flags: { port: '1' }, partFlags: true }]],
  },
  'release.deferred-off': {
    bad: ['high', { role: D, version: '0.5.22', vars: { [DEFERRED]: 'false' } }],
    good: ['passed', { role: D, version: '0.5.19', vars: { [DEFERRED]: '1' } }],
    benign: ['passed', { role: D, version: '0.5.21', vars: {} }],
    more: [
      ['high', { role: P, version: '0.5.18' }],
      ['high', { role: P, version: '0.5.18', vars: { [DEFERRED]: '1' } }],
      ['high', { role: D, version: '0.5.19', vars: {} }],
      ['high?', { role: D, version: '0.5.20', vars: {} }],
      ['not-checked', { role: D, version: '0.5.23' }],
      ['not-checked', { role: D, version: '0.5.23', vars: { [DEFERRED]: null } }],
      ['not-checked', { role: D, version: '0.6.0', vars: {} }],
      ['not-applicable', { version: '0.5.18', vars: {} }],
    ],
  },
  'release.deferred-timeouts': {
    bad: ['high', { role: D, metrics: { 'sglang:decode_deferred_kv_release_total{outcome="timeout"}': 3 } }],
    good: ['passed', { role: D, metrics: { 'sglang:decode_deferred_kv_release_total{outcome="timeout"}': 0 } }],
    benign: ['not-checked', { role: D, metrics: { 'sglang:decode_deferred_kv_release_total{outcome="drained"}': 9 } }],
    more: [
      ['high', { role: D, signs: ['deferred-release-timeout'] }],
      ['not-checked', { role: D }],
    ],
  },
  'release.batch-uncapped': {
    bad: ['medium', { role: P, version: '0.5.21', flags: {}, vars: { [CAP]: '0' } }],
    good: ['passed', { role: P, version: '0.5.21', flags: {}, vars: { [CAP]: '512' } }],
    benign: ['not-applicable', { role: P, version: '0.5.23', flags: backend('nixl'), vars: {} }],
    more: [
      ['medium', { role: P, version: '0.5.18', flags: {}, vars: { [CAP]: '512' } }],
      ['medium', { role: P, version: '0.5.23', flags: {}, vars: {} }],
      ['medium?', { role: P, version: '0.5.20', flags: {}, vars: {} }],
      ['not-checked', { role: P, version: '0.5.23', flags: {} }],
      ['not-applicable', { role: D, version: '0.5.23', flags: {}, vars: {} }],
    ],
  },
  'release.waiting-timeout': {
    bad: ['medium', { role: D, vars: { [WAIT]: '1800' } }],
    good: ['passed', { role: D, vars: {} }],
    benign: ['passed', { role: P, vars: { [WAIT]: '1800' } }],
    more: [
      ['medium', { role: P, vars: { SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT: '900' } }],
      ['not-checked', { role: D, vars: { [WAIT]: null } }],
      ['not-checked', { role: D }],
    ],
  },
  'release.fault-injection': {
    bad: ['high', { vars: { SGLANG_TEST_DISAGG_FAILURE_PROB: '0.1' } }],
    good: ['passed', { vars: {} }],
    benign: ['passed', { vars: { SGLANG_TEST_DISAGG_FAILURE_PROB: '0.0' } }],
    more: [
      ['high', { vars: { SGLANG_TEST_SOMETHING_NEW: '1' } }],
      ['not-checked', { vars: { SGLANG_TEST_DISAGG_FAILURE_PROB: '0' }, partVars: true }],
    ],
  },
  'release.waited-out': {
    bad: ['medium', { role: D, signs: ['decode-wait-timeout'] }],
    good: ['not-checked', { role: D, log: true }],
    benign: ['not-checked', { role: D, signs: ['length-refused'] }],
  },
  'release.abort-race': {
    bad: ['high?', { engine: 'vllm', version: '0.23.0', transfer: NIXL }],
    good: ['passed', { engine: 'vllm', version: '0.32.0', transfer: NIXL }],
    benign: ['not-applicable', { engine: 'vllm', version: '0.23.0', flags: {} }],
    more: [
      ['not-checked', { engine: 'vllm', version: '0.26.0', transfer: NIXL }],
      ['not-checked', { engine: 'vllm', version: '0.23.0' }],
    ],
  },
  'release.load-failure-policy': {
    bad: ['medium', { engine: 'vllm', transfer: { ...NIXL, loadFailurePolicy: 'recompute' } }],
    good: ['passed', { engine: 'vllm', transfer: { ...NIXL, loadFailurePolicy: 'fail' } }],
    benign: ['passed', { engine: 'vllm', version: '0.32.0', transfer: NIXL }],
    more: [['not-checked', { engine: 'vllm', version: '0.20.0', transfer: NIXL }]],
  },
  'release.hybrid-nixl': {
    bad: ['high?', { engine: 'vllm', arch: 'Qwen3NextForCausalLM', transfer: NIXL, flags: {} }],
    good: [
      'passed',
      {
        engine: 'vllm',
        arch: 'Qwen3NextForCausalLM',
        transfer: NIXL,
        flags: { 'disable-hybrid-kv-cache-manager': 'true' },
      },
    ],
    benign: [
      'not-applicable',
      { engine: 'vllm', arch: 'Qwen3NextForCausalLM', transfer: { connector: 'LMCacheMPConnector' }, flags: {} },
    ],
    more: [['not-checked', { engine: 'vllm', arch: 'LlamaForCausalLM', transfer: NIXL, flags: {} }]],
  },
  'release.lease-against-pool': {
    bad: ['medium', { engine: 'vllm', role: P, context: 4096, pool: 8064, transfer: NIXL, vars: { [LEASE]: '480' } }],
    good: ['passed', { engine: 'vllm', role: P, context: 4096, pool: 8064, transfer: NIXL, vars: {} }],
    benign: [
      'passed',
      { engine: 'vllm', role: P, context: 4096, pool: 80640, transfer: NIXL, vars: { [LEASE]: '480' } },
    ],
    more: [
      [
        'medium',
        { engine: 'vllm', context: 4096, pool: 8064, transfer: { ...NIXL, extra: { kv_lease_duration: '300' } } },
      ],
      ['not-checked', { engine: 'vllm', role: P, context: 4096, pool: 8064, transfer: NIXL }],
      ['not-checked', { engine: 'vllm', role: P, transfer: NIXL, vars: {} }],
    ],
  },
  'release.invalid-blocks-read': {
    bad: ['high', { engine: 'vllm', metrics: { 'vllm:nixl_num_notifications_after_expiry_total{engine="0"}': 1 } }],
    good: ['passed', { engine: 'vllm', metrics: { 'vllm:nixl_num_notifications_after_expiry_total{engine="0"}': 0 } }],
    benign: ['not-checked', { engine: 'vllm', metrics: { 'vllm:nixl_num_failed_transfers_total': 4 } }],
    more: [['high', { engine: 'vllm', signs: ['invalid-blocks-read'] }]],
  },
  'release.leases-expired': {
    bad: ['low', { engine: 'vllm', signs: ['lease-expired'] }],
    good: ['passed', { engine: 'vllm', metrics: { 'vllm:nixl_num_kv_expired_reqs_total': 0 } }],
    benign: ['not-checked', { engine: 'vllm', metrics: {} }],
  },
  'release.queue-blocked': {
    bad: [
      'high?',
      {
        engine: 'vllm',
        metrics: {
          'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"}': 1,
          'vllm:kv_cache_usage_perc{engine="0"}': 0,
          'vllm:num_requests_running{engine="0"}': 0,
        },
      },
    ],
    good: ['passed', { engine: 'vllm', metrics: { 'vllm:num_requests_waiting_by_reason{reason="capacity"}': 0 } }],
    benign: [
      'passed',
      {
        engine: 'vllm',
        metrics: {
          'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"}': 7,
          'vllm:kv_cache_usage_perc{engine="0"}': 0.97,
          'vllm:num_requests_running{engine="0"}': 12,
        },
      },
    ],
    more: [['not-checked', { engine: 'vllm' }]],
  },
  'release.handle-missing': {
    bad: ['medium', { engine: 'llmd-sidecar', role: 'router', signs: ['handle-missing'] }],
    good: ['not-checked', { engine: 'llmd-sidecar', role: 'router', log: true }],
    benign: ['not-checked', { engine: 'llmd-sidecar', role: 'router', signs: ['transfer-failed'] }],
  },
  'release.all-requests-ended': {
    bad: ['high', { engine: 'llamacpp', signs: ['all-requests-ended', 'pool-exhausted'] }],
    good: ['not-checked', { engine: 'llamacpp', log: true }],
    benign: ['not-checked', { engine: 'llamacpp', signs: ['length-refused'] }],
    more: [['medium', { engine: 'llamacpp', signs: ['pool-exhausted'] }]],
  },
};
