/** Goal: every flag means what it says or is refused in words, and no key is ever shown. Method: the parsers by example. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CodedError } from '../base/errors.js';
import { sha256Hex } from './keys.js';
import { isBroken, parseEngineOptions, parseReplayOptions, parseServeOptions, parseSizes } from './options.js';

const WORLD = {
  variables: { ACME_KEY: 'sk-acme-0001', EMPTY: '', SPACED: 'a b' },
  faultNames: ['stale-handle', 'silent-abort'],
};

/** The message of the usage error that `fn` throws. */
function refusal(fn: () => unknown): string {
  try {
    fn();
  } catch (error) {
    assert.ok(error instanceof CodedError && error.code === 'usage', String(error));
    return error.message;
  }
  return assert.fail('it was let through');
}

test('without a flag, everything has its default', () => {
  assert.deepEqual(parseServeOptions({}, WORLD), {
    host: '127.0.0.1',
    port: 8080,
    opsPort: 8081,
    opsKey: null,
    tenants: [],
    sizes: {
      context: 4096,
      prefillPool: 8192,
      prefillPoolGiven: false,
      decodePool: 16384,
      pageTokens: 16,
      runningMax: 32,
      prefixCache: true,
      zeroOnRelease: false,
    },
    onSmallPool: 'lower',
    output: 'table',
    trace: null,
    broken: { faults: [], guards: null, guardsOff: [], seed: 1 },
    bounds: {
      hostNames: [],
      tenantOpenMax: 128,
      waitingMax: 1024,
      waitMsMax: 30_000,
      bodyBytesMax: 8_388_608,
      drainMs: 1_000,
      findingsLog: 'none',
    },
    upstreams: [],
    running: { wait: false, workers: 1, tls: null, secret: null, markers: null, usage: null },
    warnings: [],
  });
});

test('sizes take suffixes, and a pool that is given is known to be', () => {
  const sizes = parseSizes({ context: '128k', prefillPool: '1M', decodePool: '2m', pageSize: '64', maxRunning: '8' });
  assert.deepEqual(sizes, {
    context: 131072,
    prefillPool: 1048576,
    prefillPoolGiven: true,
    decodePool: 2097152,
    pageTokens: 64,
    runningMax: 8,
    prefixCache: true,
    zeroOnRelease: false,
  });
  const switched = parseSizes({ prefixCache: false, zeroOnRelease: true });
  assert.deepEqual([switched.prefixCache, switched.zeroOnRelease], [false, true]);
});

test('a wrong size is refused by what was expected and what came', () => {
  const words = refusal(() => parseSizes({ pageSize: '12' }));
  assert.equal(words, 'Expected `--page-size` to be a power of two from 8 to 256, got `12`');
  for (const pageSize of ['4', '512', '0', '-8', 'x', '8.0', ''])
    assert.match(
      refusal(() => parseSizes({ pageSize })),
      /power of two/,
    );
  assert.match(
    refusal(() => parseSizes({ context: '1' })),
    /`--context` to be a whole number from 2 to 1048576, got `1`/,
  );
  assert.match(
    refusal(() => parseSizes({ context: '2M' })),
    /got `2M`/,
  );
  assert.match(
    refusal(() => parseSizes({ prefillPool: '15' })),
    /`--prefill-pool` .* from 16 to/,
  );
  assert.match(
    refusal(() => parseSizes({ decodePool: '1e9' })),
    /`--decode-pool`/,
  );
  assert.match(
    refusal(() => parseSizes({ maxRunning: '0' })),
    /`--max-running`/,
  );
});

test('ports are 0 to 65535, and two listeners never share one', () => {
  assert.equal(parseServeOptions({ port: '0', opsPort: '0' }, WORLD).port, 0);
  for (const port of ['65536', '-1', '8k', '', '80.5'])
    assert.match(
      refusal(() => parseServeOptions({ port }, WORLD)),
      /`--port` to be a port/,
    );
  assert.match(
    refusal(() => parseServeOptions({ port: '8081' }, WORLD)),
    /another port than `--ops-port`, got `8081`/,
  );
});

test('a tenant’s key comes from a variable, as a digest, or on loopback as it is, and only its hash is kept', () => {
  const digest = sha256Hex('sk-globex');
  const options = parseServeOptions(
    { tenant: ['acme=env:ACME_KEY', `globex=sha256:${digest.toUpperCase()}`, 'c=k=e:y'] },
    WORLD,
  );
  assert.deepEqual(options.tenants, [
    { name: 'acme', keys: [{ sha256: sha256Hex('sk-acme-0001'), from: 'variable' }] },
    { name: 'globex', keys: [{ sha256: digest, from: 'digest' }] },
    { name: 'c', keys: [{ sha256: sha256Hex('k=e:y'), from: 'literal' }] },
  ]);
  assert.equal(options.warnings.length, 1);
  assert.match(options.warnings[0]!, /`--tenant c=…` can be read/);
  assert.doesNotMatch(JSON.stringify(options), /k=e:y|sk-/);
});

test('a tenant that is wrong, doubled or without its variable is refused', () => {
  const tenants = (...tenant: string[]): string => refusal(() => parseServeOptions({ tenant }, WORLD));
  assert.equal(
    tenants('acme=env:NOPE'),
    'Expected the variable `NOPE`, named by `--tenant acme=…`, to hold a key, got nothing',
  );
  assert.match(tenants('acme=env:EMPTY'), /got nothing/);
  assert.match(tenants('acme=env:SPACED'), /the variable `SPACED` .* got 3 characters/);
  assert.match(tenants('acme=env:a-b'), /name a variable/);
  assert.match(tenants('acme=a1', 'acme=b2'), /each tenant once, got `acme` twice/);
  assert.match(tenants('acme=a1', 'globex=a1'), /a key of its own, got one key for `acme` and `globex`/);
  assert.match(tenants('Acme=a1'), /NAME .* got `Acme`/);
  assert.match(tenants('=a1'), /NAME/);
  assert.match(tenants('acme='), /got 0 characters/);
});

test('no error or warning shows a key, whatever is wrong with it (seed 61)', () => {
  const secret = 'SeCrEt0123456789';
  const around = fc.constantFrom('', 'sha256:', ' ', '\n', 'x'.repeat(600), '\u001b', 'é');
  const place = fc.constantFrom<[string, string]>(
    ['acme=', '127.0.0.1'],
    ['', '127.0.0.1'],
    ['acme=', '10.0.0.1'],
    ['Bad Name=', '::1'],
  );
  fc.assert(
    fc.property(around, around, place, (before, after, [name, host]) => {
      const key = `${before}${secret}${after}`;
      for (const flags of [
        { tenant: [`${name}${key}`], host },
        { opsKey: key, host },
      ]) {
        let words: string;
        try {
          words = JSON.stringify(parseServeOptions(flags, WORLD));
        } catch (error) {
          words = String(error);
        }
        assert.doesNotMatch(words, /SeCrEt/);
      }
    }),
    { seed: 61 },
  );
});

test('beyond loopback: no key on the command line, and none of the operators’ port without its key', () => {
  const open = { host: '0.0.0.0', opsKey: 'env:ACME_KEY' };
  assert.equal(parseServeOptions(open, WORLD).opsKey?.from, 'variable');
  assert.match(
    refusal(() => parseServeOptions({ ...open, tenant: ['a=literal'] }, WORLD)),
    /beyond loopback, got a key itself/,
  );
  assert.match(
    refusal(() => parseServeOptions({ ...open, opsKey: 'literal' }, WORLD)),
    /beyond loopback/,
  );
  assert.match(
    refusal(() => parseServeOptions({ host: '::' }, WORLD)),
    /Expected `--ops-key`/,
  );
  assert.match(
    refusal(() => parseServeOptions({ host: 'a b' }, WORLD)),
    /`--host`/,
  );
});

test('faults on and guards off are taken on loopback, with a warning, and refused beyond it', () => {
  const cases = [{ fault: ['stale-handle'] }, { guards: 'off' }, { guardOff: ['tag'] }];
  for (const flags of cases) {
    const options = parseServeOptions(flags, WORLD);
    assert.ok(isBroken(options.broken));
    assert.match(options.warnings[0]!, /NOT kept apart/);
    const open = { ...flags, host: '192.168.1.5', opsKey: 'env:ACME_KEY' };
    assert.match(
      refusal(() => parseServeOptions(open, WORLD)),
      /loopback address with faults on or guards off/,
    );
    assert.match(
      refusal(() => parseEngineOptions({ ...flags, host: '0.0.0.0' }, WORLD)),
      /loopback/,
    );
  }
  assert.ok(!isBroken(parseServeOptions({ guards: 'on', seed: '7' }, WORLD).broken));
});

test('faults and guards are known by name, each counted once', () => {
  const { broken } = parseServeOptions(
    { fault: ['silent-abort', 'silent-abort'], guardOff: ['tag', 'policy', 'tag'], seed: '4294967295' },
    WORLD,
  );
  assert.deepEqual(broken, { faults: ['silent-abort'], guards: null, guardsOff: ['policy', 'tag'], seed: 4294967295 });
  assert.match(
    refusal(() => parseServeOptions({ fault: ['stale'] }, WORLD)),
    /`cofferdam replay --list` names, got `stale`/,
  );
  assert.match(
    refusal(() => parseServeOptions({ guardOff: ['tags'] }, WORLD)),
    /one of policy, .*, got `tags`/,
  );
  assert.match(
    refusal(() => parseServeOptions({ guards: 'maybe' }, WORLD)),
    /`--guards` to be `on` or `off`, got `maybe`/,
  );
  assert.match(
    refusal(() => parseServeOptions({ seed: '4294967296' }, WORLD)),
    /`--seed`/,
  );
});

test('an engine is one node or a pair, never both', () => {
  const listeners = (flags: object): unknown => parseEngineOptions(flags, WORLD).listeners;
  assert.deepEqual(listeners({}), { kind: 'single', port: 30000 });
  assert.deepEqual(listeners({ port: '5' }), { kind: 'single', port: 5 });
  assert.deepEqual(listeners({ prefillPort: '5', decodePort: '6' }), { kind: 'pair', prefillPort: 5, decodePort: 6 });
  assert.match(
    refusal(() => listeners({ port: '5', decodePort: '6' })),
    /got both/,
  );
  assert.match(
    refusal(() => listeners({ decodePort: '6' })),
    /got no `--prefill-port`/,
  );
  assert.match(
    refusal(() => listeners({ prefillPort: '6' })),
    /got no `--decode-port`/,
  );
  assert.match(
    refusal(() => listeners({ prefillPort: '6', decodePort: '6' })),
    /another port/,
  );
  assert.match(parseEngineOptions({ host: '0.0.0.0' }, WORLD).warnings[0]!, /asks for no key/);
});

test('replay takes a fault, the list or the matrix', () => {
  const parse = (fault: string | undefined, flags: object): unknown => parseReplayOptions(fault, flags, WORLD);
  assert.deepEqual(parse('stale-handle', { guards: 'off', guardOff: ['tag'], output: 'json' }), {
    what: { kind: 'fault', fault: 'stale-handle' },
    guards: 'off',
    guardsOff: ['tag'],
    output: 'json',
    seed: 1,
  });
  assert.deepEqual(parse(undefined, { matrix: true }), {
    what: { kind: 'matrix' },
    guards: null,
    guardsOff: [],
    output: 'table',
    seed: 1,
  });
  assert.match(
    refusal(() => parse(undefined, {})),
    /got none of them/,
  );
  assert.match(
    refusal(() => parse('stale-handle', { list: true })),
    /got 2 of them/,
  );
  assert.match(
    refusal(() => parse('nope', {})),
    /`FAULT` .* got `nope`/,
  );
  assert.match(
    refusal(() => parse(undefined, { matrix: true, guards: 'off' })),
    /with a FAULT/,
  );
  assert.match(
    refusal(() => parse('stale-handle', { output: 'xml' })),
    /`table` or `json`, got `xml`/,
  );
});
