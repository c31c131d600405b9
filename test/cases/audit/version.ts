import { type CaseTable, D, P } from './case.js';

export const VERSION_CASES: CaseTable = {
  'version.advisory': {
    bad: ['high', { version: '0.5.20', flags: {} }],
    good: ['info?', { version: '0.5.23', flags: {} }],
    // The advisory about logit processors names every version, and nobody uses them here.
    benign: ['passed', { engine: 'vllm', version: '0.33.0', flags: {} }],
    more: [
      ['critical', { version: '0.5.23', flags: { 'enable-custom-logit-processor': 'true' } }],
      // Nothing was read of its flags: no accusation for a switch that may be off.
      ['info?', { version: '0.5.23' }],
      ['critical', { engine: 'lmcache', version: '0.5.6rc3' }],
      ['critical', { engine: 'lmcache', version: '0.5.5' }],
      // Whether the release holds the fix of what its candidates are named for is not public.
      ['info?', { engine: 'lmcache', version: '0.5.6' }],
      ['passed', { engine: 'lmcache', version: '0.5.7' }],
      ['critical', { engine: 'mooncake', version: '0.3.12.post2' }],
      ['info?', { engine: 'vllm', version: '0.33.0rc1', flags: {} }],
      ['not-checked', { engine: 'vllm', flags: {} }],
      ['high', { engine: 'llamacpp', version: 'b9058', flags: { 'slot-save-path': '/s' } }],
      ['info?', { engine: 'llamacpp', version: 'b9059', flags: { 'slot-save-path': '/s' } }],
    ],
  },
  'version.pair-differs': {
    bad: ['medium', { role: P, version: '0.5.23' }, { role: D, version: '0.5.22' }],
    good: ['passed', { role: P, version: '0.5.23' }, { role: D, version: '0.5.23' }],
    benign: ['passed', { role: P, version: '0.5.23+cu126' }, { role: D, version: '0.5.23+cu128' }],
    more: [
      ['not-checked', { role: P, version: '0.5.23' }, { role: D }],
      // A running vLLM does not tell its role.
      ['not-applicable', { engine: 'vllm', role: 'unknown', version: '0.33.0' }],
      [
        'passed',
        { engine: 'vllm', role: 'unknown', version: '0.33.0' },
        { engine: 'vllm', role: 'unknown', version: '0.33.0' },
      ],
      [
        'not-checked',
        { engine: 'vllm', role: 'unknown', version: '0.33.0' },
        { engine: 'vllm', role: 'unknown', version: '0.32.0' },
      ],
      ['not-checked', { engine: 'vllm', role: 'unknown', version: '0.33.0' }, { engine: 'vllm', role: 'unknown' }],
    ],
  },
  'version.nightly': {
    bad: ['info', { version: '0.5.23.dev20261020+gabc' }],
    good: ['passed', { version: '0.5.23' }],
    benign: ['passed', { version: '0.5.10.post2' }],
  },
  'version.unread': {
    bad: ['info', { version: '0.5.24' }],
    good: ['passed', { version: '0.5.23' }],
    benign: ['passed', { engine: 'vllm', version: '0.33.0rc2' }],
  },
};
