/** Goal: a key tells a tenant, and nothing else tells anything. Method: the comparisons are counted. */
import assert from 'node:assert/strict';
import { timingSafeEqual } from 'node:crypto';
import { describe, test } from 'node:test';
import { CodedError } from '../base/errors.js';
import { keyDigest, TenantRegistry } from './tenants.js';

const configs = [
  { name: 'acme', keys: [{ sha256: keyDigest('k1') }, { sha256: keyDigest('k2') }] },
  { name: 'globex', keys: [{ sha256: keyDigest('k3') }, { sha256: keyDigest('k4'), disabled: true }] },
];

describe('a registry of tenants', () => {
  test('finds a tenant by each of its keys, numbered from 1', () => {
    const registry = new TenantRegistry(configs, 's');
    assert.deepEqual(
      ['k1', 'k2', 'k3'].map((key) => registry.lookUp(key)?.number),
      [1, 1, 2],
    );
  });

  test('compares every key with every digest, whatever came: the first, the last, an unknown, a disabled one, none', () => {
    for (const key of ['k1', 'k3', 'unknown', 'k4', '', null]) {
      let compared = 0;
      const registry = new TenantRegistry(configs, 's', (a, b) => {
        compared++;
        assert.equal(a.length, b.length);
        return timingSafeEqual(a, b);
      });
      registry.lookUp(key);
      assert.equal(compared, 4, String(key));
    }
  });

  test('answers unknown, disabled and absent keys with the same nothing', () => {
    const registry = new TenantRegistry(configs, 's');
    for (const key of ['unknown', 'k4', '', null, keyDigest('k1')]) assert.equal(registry.lookUp(key), null);
  });

  test('salts are fixed-length hex, differ between tenants and secrets, and last', () => {
    const [a, b] = new TenantRegistry(configs, 's').tenants;
    const [c] = new TenantRegistry(configs, 'other').tenants;
    const [d] = new TenantRegistry(configs, 's').tenants;
    for (const tenant of [a!, b!, c!]) assert.match(tenant.salt, /^[0-9a-f]{64}$/);
    assert.notEqual(a!.salt, b!.salt);
    assert.notEqual(a!.salt, c!.salt);
    assert.equal(a!.salt, d!.salt);
  });

  test('a replacement holds at once and whole; who stays or comes back is the same, and no number is anybody else’s', () => {
    const registry = new TenantRegistry(configs, 's');
    const [acme, globex] = registry.tenants;
    const other = { name: 'other', keys: [{ sha256: keyDigest('k5') }] };
    registry.replace([other, { name: 'globex', keys: [{ sha256: keyDigest('k6') }] }]);
    assert.deepEqual(
      ['k1', 'k3', 'k5', 'k6'].map((key) => registry.lookUp(key)?.name),
      [undefined, undefined, 'other', 'globex'],
    );
    assert.equal(registry.lookUp('k6'), globex);
    const numbers = [acme!.number, globex!.number, registry.selfTestNumber, registry.lookUp('k5')!.number];
    assert.equal(new Set(numbers).size, 4, numbers.join());
    registry.replace(configs);
    assert.equal(registry.lookUp('k1'), acme);
  });

  test('a replacement that is wrong changes nothing', () => {
    const registry = new TenantRegistry(configs, 's');
    const before = registry.tenants;
    const good = { name: 'new', keys: [{ sha256: keyDigest('k9') }] };
    for (const bad of [[], [good, { ...good, name: 'twice' }], [good, { name: 'a b', keys: [] }]]) {
      assert.throws(() => registry.replace(bad), CodedError);
      assert.equal(registry.lookUp('k9'), null);
      assert.equal(registry.tenants, before);
    }
  });

  const wrong: [string, ConstructorParameters<typeof TenantRegistry>[0]][] = [
    ['no tenant', []],
    ['a name with a space', [{ name: 'a b', keys: [] }]],
    ['a name twice', [configs[0]!, { name: 'ACME', keys: [] }]],
    ['a key twice', [configs[0]!, { name: 'x', keys: [{ sha256: keyDigest('k1') }] }]],
    ['a digest that is none', [{ name: 'x', keys: [{ sha256: 'k1' }] }]],
  ];
  for (const [title, config] of wrong) {
    test(`refuses ${title}, and never shows a key`, () => {
      assert.throws(
        () => new TenantRegistry(config, 's'),
        (thrown) => thrown instanceof CodedError && thrown.code === 'usage' && !thrown.message.includes('k1'),
      );
    });
  }
});
