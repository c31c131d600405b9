/** Goal: a node is compared with those it may be paired with, and with no other deployment; thousands of them in no time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counterparts, PEERS_MAX, replicasOf } from './peers.js';
import { fleet, workload } from './rules/fixtures.js';

const names = (nodes: readonly { readonly name: string }[]): string[] => nodes.map(({ name }) => name);

test('names in front of the role part deployments, names behind it do not', () => {
  const all = fleet(
    { name: 'glm-prefill-0', role: 'prefill' },
    { name: 'glm-decode-h100', role: 'decode' },
    { name: 'glm-decode-h200', role: 'decode' },
    { name: 'qwen-decode', role: 'decode' },
    { name: 'prefill', role: 'prefill' },
  );
  assert.deepEqual(names(counterparts(all, all.nodes[0]!)), ['glm-decode-h100', 'glm-decode-h200']);
  assert.deepEqual(
    names(counterparts(all, all.nodes[3]!)),
    ['glm-prefill-0', 'prefill'],
    'no own prefill: any may be it',
  );
  assert.equal(counterparts(all, all.nodes[4]!).length, 3);
});

test('a namespace parts deployments, where it holds the other half', () => {
  const inside = (namespace: string) => ({ ...workload({}), namespace });
  const all = fleet(
    { name: 'prefill', role: 'prefill', exposure: inside('a') },
    { name: 'decode', role: 'decode', exposure: inside('a') },
    { name: 'decode-2', role: 'decode', exposure: inside('b') },
    { name: 'prefill-2', role: 'prefill', exposure: inside('c') },
  );
  assert.deepEqual(names(counterparts(all, all.nodes[0]!)), ['decode']);
  assert.deepEqual(names(counterparts(all, all.nodes[3]!)), ['decode', 'decode-2']);
});

test('of very many peers every set-up is compared, each once', () => {
  const same = Array.from({ length: PEERS_MAX * 2 }, (_, i) => ({
    name: `decode-${i}`,
    role: 'decode' as const,
    limit: 100,
    flags: { port: String(i) },
  }));
  const all = fleet({ role: 'prefill' }, ...same, { name: 'odd', role: 'decode', limit: 99 });
  const found = counterparts(all, all.nodes[0]!);
  assert.equal(found.length, 2);
  assert.ok(names(found).includes('odd'));
  assert.ok(names(replicasOf(all, all.nodes[1]!)).includes('odd'));
});
