/** Goal: versions sort as their packages do. Method: one list in order, and properties over it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareVersions, isAtLeastVersion, parseVersion } from './version.js';

const IN_ORDER = [
  '0.4',
  '0.4.6.post1',
  '0.5.10',
  '0.5.10.post2',
  '0.5.18.dev20260801+gabcdef1',
  '0.5.18rc0',
  '0.5.18rc1',
  '0.5.18',
  '0.5.19',
  '0.5.21.dev1',
  '0.5.21',
  '0.5.21.post1.dev3',
  '0.5.21.post1',
  '0.5.22',
  '0.6',
  '1.0a1',
  '1.0b2',
  '1.0',
];

test('versions come in the order of PEP 440: a nightly carries the next number and comes before it', () => {
  for (const [i, a] of IN_ORDER.entries()) {
    for (const [j, b] of IN_ORDER.entries()) {
      const order = compareVersions(parseVersion(a)!, parseVersion(b)!)!;
      assert.equal(Math.sign(order), Math.sign(i - j), `${a} against ${b}`);
    }
  }
});

test('spellings of one version are equal, and local parts change nothing', () => {
  for (const [a, b] of [
    ['v0.5.18', '0.5.18'],
    ['0.5', '0.5.0'],
    ['0.32.0+cpu', '0.32.0'],
    ['1.0-rc.1', '1.0rc1'],
    ['0.4.6-1', '0.4.6.post1'],
  ] as const) {
    assert.equal(compareVersions(parseVersion(a)!, parseVersion(b)!), 0, `${a} and ${b}`);
  }
});

test('builds of llama.cpp compare with each other and with nothing else; what is no version is none', () => {
  assert.ok(compareVersions(parseVersion('b9058')!, parseVersion('b11434-1a2b3c4')!)! < 0);
  assert.equal(compareVersions(parseVersion('b9058')!, parseVersion('0.5')!), null);
  for (const text of ['', 'latest', 'b0-unknown', 'main', '0.5.x', 'a'.repeat(1000), '1'.repeat(1000)])
    assert.equal(parseVersion(text), null, text);
  assert.equal(isAtLeastVersion(null, '0.5'), null);
  assert.equal(isAtLeastVersion(parseVersion('0.5.22.dev20261001+g1'), '0.5.22'), false);
});
