import { type CaseTable, D, P } from './case.js';

const CONTEXT = 1048576;
const POOL = 681280;

export const CAPACITY_CASES: CaseTable = {
  'capacity.pool-below-context': {
    bad: ['critical', { role: P, context: CONTEXT, pool: POOL }],
    good: ['passed', { role: P, context: CONTEXT, pool: 2040000 }],
    benign: ['passed', { role: P, context: POOL, pool: POOL }],
    more: [
      ['high', { context: CONTEXT, pool: POOL }],
      ['critical', { role: D, context: CONTEXT, pool: [2040000, POOL] }],
      ['critical', { role: P, context: CONTEXT, poolCap: POOL }],
      ['not-checked', { role: P, context: CONTEXT }],
      ['not-checked', { role: P, pool: POOL }],
      ['not-applicable', { engine: 'sglang-router', role: 'router', context: CONTEXT, pool: POOL }],
    ],
  },
  'capacity.pool-margin': {
    bad: ['low', { context: 1000, pool: 1040 }],
    good: ['passed', { context: 1000, pool: 1050 }],
    benign: ['not-applicable', { context: 1000, pool: 900 }],
  },
  'capacity.accept-limits-differ': {
    bad: ['high', { role: P, limit: 993 }, { role: D, limit: 1993 }],
    good: ['passed', { role: P, limit: 993 }, { role: D, limit: 993 }],
    benign: ['not-applicable', { limit: 993 }, { role: D, limit: 1993 }],
    more: [
      ['medium', { role: P, limit: 1993 }, { role: D, limit: 993 }],
      ['not-checked', { role: P, limit: 993 }],
      ['not-checked', { role: P, limit: 993 }, { role: D }],
      ['not-checked', { role: P, limit: 993 }, { role: D, engine: 'vllm', limit: 5 }],
    ],
  },
  'capacity.limit-below-context': {
    bad: ['medium', { context: CONTEXT, limit: POOL - 7 }],
    good: ['passed', { context: CONTEXT, limit: CONTEXT - 7 }],
    benign: ['passed', { context: CONTEXT, limit: CONTEXT - 39 }],
    more: [['not-checked', { context: CONTEXT }]],
  },
  'capacity.contexts-differ': {
    bad: ['medium', { role: P, context: 4096 }, { role: D, context: 8192 }],
    good: ['passed', { role: P, context: 4096 }, { role: D, context: 4096 }],
    benign: ['not-applicable', { context: 4096 }, { context: 8192 }],
    more: [['not-checked', { role: P, context: 4096 }, { role: D, context: 4096 }, { role: D }]],
  },
  'capacity.replicas-differ': {
    bad: ['medium', { model: 'm', limit: 1000 }, { model: 'm', limit: 2000 }],
    good: ['passed', { model: 'm', limit: 2000 }, { model: 'm', limit: 2000 }],
    benign: ['not-applicable', { model: 'm', limit: 1000 }, { model: 'other', limit: 2000 }],
    more: [
      ['passed', { model: 'm', context: 1000, pool: 1500 }, { model: 'm', context: 1000, pool: 1501 }],
      ['not-applicable', { model: 'm', limit: 1000 }, { model: 'm', role: D, limit: 2000 }],
      ['not-checked', { limit: 1000 }, { model: 'm', limit: 2000 }],
    ],
  },
  'capacity.auto-truncate': {
    bad: ['high', { role: P, limit: 5, flags: { 'allow-auto-truncate': 'true' } }, { role: D, limit: 9 }],
    good: ['passed', { role: P, flags: {} }],
    benign: ['passed', { role: P, flags: { 'allow-auto-truncate': 'false' } }],
    more: [
      ['medium', { role: P, limit: 9, flags: { 'allow-auto-truncate': 'true' } }, { role: D, limit: 9 }],
      ['low', { flags: { 'allow-auto-truncate': 'true' } }],
      ['not-checked', { role: P, flags: { port: '1' }, partFlags: true }],
    ],
  },
  'capacity.slots-overcommitted': {
    bad: ['high', { engine: 'llamacpp', slots: [4, 131072, true], pool: 131072 }],
    good: ['passed', { engine: 'llamacpp', slots: [4, 32768, true], pool: 131072 }],
    benign: ['passed', { engine: 'llamacpp', slots: [4, 32768, false], pool: 32768 }],
    more: [
      ['passed', { engine: 'llamacpp', slots: [1, 131072, null], pool: 131072 }],
      ['not-checked', { engine: 'llamacpp', slots: [4, 131072, null], pool: 131072 }],
      ['not-checked', { engine: 'llamacpp', slots: [4, 131072, true] }],
    ],
  },
  'capacity.block-override': {
    bad: ['medium', { engine: 'vllm', version: '0.19.0', flags: { 'num-gpu-blocks-override': '16' } }],
    good: ['passed', { engine: 'vllm', flags: {} }],
    benign: ['passed', { engine: 'vllm', flags: { 'num-gpu-blocks-override': 'None' } }],
    more: [
      ['info', { engine: 'vllm', version: '0.32.0', flags: { 'num-gpu-blocks-override': '16' } }],
      ['medium', { engine: 'vllm', signs: ['block-count-overridden'] }],
    ],
  },
  'capacity.sliding-pool': {
    bad: ['medium?', { role: D, context: 4096, poolSwa: 2048 }],
    good: ['passed', { role: D, context: 4096, poolSwa: 4096 }],
    benign: ['not-applicable', { role: P, context: 4096, poolSwa: 2048 }],
  },
  'capacity.ranks-differ': {
    bad: ['medium', { context: 1000, pool: [2000, 900] }],
    good: ['passed', { context: 1000, pool: [2000, 1900] }],
    benign: ['not-applicable', { context: 1000, pool: [900, 800] }],
    more: [
      ['not-applicable', { context: 1000, pool: 2000 }],
      ['not-checked', { context: 1000, pool: 2000, flags: { 'dp-size': '2' } }],
    ],
  },
  'capacity.pool-warned': {
    bad: ['high', { signs: ['pool-below-context-warning'] }],
    good: ['not-checked', { log: true }],
    benign: ['not-applicable', { context: 1000, pool: 1000, signs: ['pool-below-context-warning'] }],
  },
  'capacity.trained-context': {
    bad: ['info', { engine: 'llamacpp', trained: 262144, slots: [4, 8192, null] }],
    good: ['passed', { engine: 'llamacpp', trained: 8192, slots: [4, 8192, null] }],
    benign: ['passed', { engine: 'llamacpp', trained: 4096, slots: [1, 8192, null] }],
  },
  'sources.context-not-set': {
    bad: ['info', { flags: {} }],
    good: ['passed', { flags: { 'context-length': '4096' } }],
    benign: ['not-checked', { flags: { port: '1' }, partFlags: true }],
    more: [
      ['info', { flags: { 'context-length': null } }],
      ['info', { engine: 'llamacpp', flags: { 'ctx-size': '0' } }],
      ['passed', { engine: 'vllm', flags: { 'max-model-len': '128k' } }],
    ],
  },
  'sources.context-fitted': {
    bad: ['low', { engine: 'vllm', flags: { 'max-model-len': 'auto' } }],
    good: ['passed', { engine: 'vllm', flags: { 'max-model-len': '4096' } }],
    benign: ['passed', { engine: 'vllm', flags: {}, log: true }],
    more: [['low', { engine: 'vllm', signs: ['context-auto-fitted'] }]],
  },
};
