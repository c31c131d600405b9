import { type CaseTable, D, P } from './case.js';

const ON = { 'disaggregation-enable-kv-checksum': 'true' } as const;
const LLAMA = 'LlamaForCausalLM';
const GLM = 'zai-org/GLM-5.3';

export const DETECTION_CASES: CaseTable = {
  'detection.corruption-seen': {
    bad: ['critical', { role: D, signs: ['checksum-mismatch', 'canary-violation'] }],
    good: ['not-checked', { role: D, log: true }],
    benign: ['not-checked', { role: D, signs: ['checksum-skipped', 'canary-alive'] }],
  },
  'detection.checksum-off': {
    bad: ['medium', { role: D, version: '0.5.23', flags: { 'tp-size': '8' } }],
    good: ['passed', { role: D, version: '0.5.23', flags: ON }],
    // Off is right where it would hang.
    benign: ['not-applicable', { role: D, version: '0.5.22', flags: { 'tp-size': '8' } }],
    more: [
      ['medium', { role: D, version: '0.5.22', flags: {} }],
      ['not-applicable', { role: D, version: '0.5.18', flags: {} }],
      ['not-checked', { role: D, version: '0.5.20', flags: {} }],
      ['not-checked', { role: D, version: '0.5.23' }],
      ['not-applicable', { role: D, version: '0.5.23', arch: 'DeepseekV4ForCausalLM', flags: {} }],
    ],
  },
  'detection.checksum-one-sided': {
    bad: ['high', { role: D, version: '0.5.23', flags: ON }, { role: P, version: '0.5.23', flags: {} }],
    good: ['passed', { role: D, version: '0.5.23', flags: ON }, { role: P, version: '0.5.23', flags: ON }],
    benign: ['not-applicable', { role: D, version: '0.5.23', flags: {} }, { role: P, version: '0.5.23', flags: {} }],
    more: [
      ['not-checked', { role: D, version: '0.5.23', flags: ON }, { role: P, version: '0.5.23' }],
      ['high', { role: D, version: '0.5.23', flags: ON }, { role: P, version: '0.5.19' }],
    ],
  },
  'detection.checksum-unsafe': {
    bad: ['high', { role: D, version: '0.5.22', flags: { ...ON, 'tp-size': '8' } }],
    good: ['passed', { role: D, version: '0.5.23', flags: { ...ON, 'tp-size': '8' } }],
    benign: ['passed', { role: D, version: '0.5.22', flags: ON }],
    more: [
      ['info?', { role: D, version: '0.5.23', model: 'deepseek-ai/DeepSeek-V4', flags: ON }],
      ['not-applicable', { role: D, version: '0.5.22', flags: { 'tp-size': '8' } }],
    ],
  },
  'detection.checksum-skipped': {
    bad: ['medium', { role: D, signs: ['checksum-skipped'] }],
    good: ['not-checked', { role: D, log: true }],
    benign: ['not-applicable', { signs: ['checksum-skipped'] }],
  },
  'detection.canary-off': {
    bad: ['medium', { role: D, version: '0.5.23', arch: LLAMA, flags: {} }],
    good: ['passed', { role: D, version: '0.5.23', arch: LLAMA, flags: { 'kv-canary': 'log' } }],
    // It would not even start with this model.
    benign: ['not-applicable', { role: D, version: '0.5.23', model: GLM, flags: {} }],
    more: [
      ['not-checked', { role: D, version: '0.5.23', model: 'my-model', flags: {} }],
      ['not-checked', { role: D, version: '0.5.10', arch: LLAMA, flags: {} }],
    ],
  },
  'detection.coverage': {
    bad: ['info?', { role: D, model: GLM, flags: { ...ON, 'kv-canary': 'log' } }],
    good: ['passed', { role: D, arch: LLAMA, flags: ON }],
    benign: ['not-applicable', { role: D, model: GLM, flags: {} }],
  },
  'detection.unproven': {
    bad: ['info', { role: D, flags: { ...ON, 'kv-canary': 'log' } }],
    good: ['not-applicable', { role: D, flags: { 'kv-canary': 'log' }, signs: ['canary-alive'] }],
    benign: ['not-applicable', { role: D, flags: {} }],
  },
  'detection.canary-real-data': {
    bad: ['info', { flags: { 'kv-canary': 'log' } }],
    good: ['passed', { flags: { 'kv-canary': 'raise', 'kv-canary-real-data': 'partial' } }],
    benign: ['not-applicable', { flags: {} }],
  },
  'detection.canary-perturbed': {
    bad: ['high', { vars: { SGLANG_KV_CANARY_PERTURB_REAL_DATA_PROB: '0.01' } }],
    good: ['passed', { vars: {} }],
    benign: ['passed', { vars: { SGLANG_KV_CANARY_PERTURB_REAL_DATA_PROB: '0' } }],
    more: [['not-checked', {}]],
  },
  'detection.metrics-off': {
    bad: ['low', { flags: {} }],
    good: ['passed', { flags: { 'enable-metrics': 'true' } }],
    benign: ['passed', { metrics: { 'sglang:num_used_tokens': 1 } }],
  },
  'detection.pair-mismatch': {
    bad: ['medium', { role: P, page: 64, flags: {} }, { role: D, page: 1, flags: {} }],
    good: ['passed', { role: P, page: 64, flags: {} }, { role: D, page: 64, flags: {} }],
    benign: ['not-checked', { role: P, flags: {} }, { role: D, page: 1, flags: {} }],
    more: [
      ['medium', { role: P, page: 1, flags: { 'kv-cache-dtype': 'fp8_e4m3' } }, { role: D, page: 1, flags: {} }],
      ['medium', { role: D, signs: ['pair-mismatch'] }],
    ],
  },
  'detection.retrieved-too-few': {
    bad: ['medium?', { engine: 'vllm', signs: ['retrieved-too-few'] }],
    good: ['not-checked', { engine: 'vllm', log: true }],
    benign: ['not-checked', { engine: 'vllm', signs: ['lease-expired'] }],
  },
};
