/** Goal: the file says of engines all that flags can, and more; what does not fit together is said with its place. Method: files by example. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { boundsOf } from './config-bounds.js';
import { Registry } from 'prom-client';
import { type ConfigFile, loadConfig } from './config-file.js';
import { ConfigReloader, type Loaded } from './config-reload.js';
import { UPSTREAM_EXAMPLE } from './config-upstreams.js';
import type { ServeFlags } from './flags.js';
import { parseServeOptions, type ServeOptions } from './options.js';

const VARIABLES = { ENGINE_KEY: 'sk-engine-0001', SECRET: 'a-secret-of-salts', ACME: 'sk-acme' };
const WORLD = { variables: VARIABLES, faultNames: [] };
let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'cofferdam-engines-'));
});
after(() => rmSync(folder, { recursive: true }));

function load(text: string, flags: ServeFlags = {}): ConfigFile | string[] {
  const path = join(folder, 'c.yaml');
  writeFileSync(path, text);
  const loaded = loadConfig(path, { variables: VARIABLES, flags });
  return 'lines' in loaded ? loaded.lines.map((line) => line.slice(path.length + 1)) : loaded;
}

function options(text: string, flags: ServeFlags = {}): ServeOptions {
  const file = load(text, flags);
  assert.ok(!Array.isArray(file), JSON.stringify(file));
  return parseServeOptions(flags, WORLD, { ...file, bounds: boundsOf(file.leaves) });
}

const mistakes = (text: string): string => {
  const lines = load(text);
  assert.ok(Array.isArray(lines), 'it was let through');
  return lines.join('\n');
};

const ENGINES = `
upstreams:
  - kind: vllm
    urls: ["http://127.0.0.1:8000/v1", "https://localhost:8001"]
    key: env:ENGINE_KEY
    tokenizer: models/qwen
    context: 32k
    pool: 8k
    max-running: 7
    first-byte: 2m
    idle: 5s
    require: [salt]
    data-parts: true
    ca: ca.pem
  - kind: sglang-pd
    prefill: [{url: "http://127.0.0.1:30000", bootstrap-port: 8998}]
    decode: [{url: "http://127.0.0.1:30001"}]
start: wait
workers: 2
tenants: [{name: acme, keys: [env:ACME]}]
secret: env:SECRET
listen: {tls: {cert: tls/cert.pem, key: /etc/key.pem}}
usage: {path: log/usage.jsonl, rotate-bytes: 1M, keep: 3}
`;

describe('engines in the file', () => {
  test('are what flags would say, with paths from the folder of the file and keys that are nowhere shown', () => {
    const { upstreams, running } = options(ENGINES);
    const [first, second] = upstreams;
    assert.deepEqual(
      first?.nodes.map(({ url }) => url.href),
      ['http://127.0.0.1:8000/', 'https://localhost:8001/'],
    );
    const { nodes: _nodes, key, ...rest } = first!;
    assert.deepEqual(rest, {
      kind: 'vllm',
      tokenizer: join(folder, 'models/qwen'),
      model: null,
      context: 32_768,
      pool: 8192,
      runningMax: 7,
      firstByteMsMax: 120_000,
      idleMsMax: 5_000,
      require: ['salt'],
      layout: 'unknown',
      dataParts: true,
      ca: join(folder, 'ca.pem'),
      insecure: false,
    });
    assert.equal(key?.reveal(), VARIABLES.ENGINE_KEY);
    assert.ok(!JSON.stringify(upstreams).includes(VARIABLES.ENGINE_KEY) && !`${String(key)}`.includes('sk-'));
    assert.deepEqual(
      second?.nodes.map(({ url, role, bootstrapPort }) => [url.port, role, bootstrapPort]),
      [
        ['30000', 'prefill', 8998],
        ['30001', 'decode', null],
      ],
    );
    const { secret, ...others } = running;
    assert.equal(secret?.reveal(), VARIABLES.SECRET);
    assert.deepEqual(others, {
      wait: true,
      workers: 2,
      tls: { cert: join(folder, 'tls/cert.pem'), key: '/etc/key.pem' },
      markers: null,
      usage: { path: join(folder, 'log/usage.jsonl'), rotateBytes: 1_048_576, keep: 3 },
    });
  });

  test('stand as the example shows them', () => {
    const text = UPSTREAM_EXAMPLE.slice(UPSTREAM_EXAMPLE.indexOf('upstreams:')).join('\n');
    assert.deepEqual(
      options(text).upstreams.map(({ kind, nodes }) => [kind, nodes.length]),
      [
        ['vllm', 2],
        ['sglang-pd', 2],
      ],
    );
  });

  test('give way to flags as a whole, and flags of the embedded engine do not mix with them', () => {
    const flags = { upstream: ['http://127.0.0.1:9000'], engineKey: 'env:ACME', wait: true };
    const { upstreams } = options(ENGINES, flags);
    assert.deepEqual(
      upstreams.map(({ kind, nodes, key }) => [kind, nodes[0]?.url.port, key?.reveal()]),
      [['auto', '9000', 'sk-acme']],
    );
    for (const [more, flag] of [
      [{ context: '8k' }, '--context'],
      [{ prefixCache: false }, '--no-prefix-cache'],
    ] as const) {
      assert.throws(() => options(ENGINES, more), new RegExp(`Expected \`${flag}\` without engines that are there`));
    }
    assert.throws(
      () => options('start: wait\n', { engineKey: 'env:ACME' }),
      /Expected `--upstream` with `--engine-key`/,
    );
  });

  test('that do not fit together are refused with their place', () => {
    assert.match(
      mistakes('upstreams: [{kind: embedded}, {kind: vllm, urls: ["http://a:1"]}]\n'),
      /^1:13: .*the embedded engine alone/,
    );
    assert.match(
      mistakes('upstreams: [{kind: vllm, urls: ["http://a:1"]}, {kind: auto, urls: ["http://a:1/v1"]}]\n'),
      /^1:\d+: .*each address once/,
    );
    assert.match(
      mistakes('upstreams: [{kind: openai, urls: ["http://a:1"]}]\n'),
      /`upstreams\[0\]\.context` for the kind `openai`, got nothing/,
    );
    assert.match(
      mistakes('upstreams: [{kind: vllm, urls: ["https://a.example"], insecure: true}]\n'),
      /beyond loopback, got `true`/,
    );
    assert.match(
      mistakes('listen: {tls: {cert: a.pem}}\n'),
      /^1:\d+: .*`cert` and `key` .* together.* Add `key:` to it/,
    );
    assert.match(
      mistakes('secret: env:NOT_THERE\n'),
      /the variable `NOT_THERE`, named by `secret`, to hold a key, got nothing/,
    );
    const url = mistakes('upstreams: [{kind: vllm, urls: ["http://user:sk-word@a:1"]}]\n');
    assert.match(url, /`upstreams\[0\]\.urls\[0\]` to be an address such as/);
    assert.ok(!url.includes('sk-word'));
    const key = mistakes(`secret: sha256:${'a'.repeat(64)}\n`);
    assert.match(key, /`secret` to be `env:NAME` or `file:PATH`/, 'a digest can not make salts');
  });
});

test('a reload that changes an engine, or the key that is found where it was, is refused whole and says what wants a restart', () => {
  const keys = { ...VARIABLES };
  const path = join(folder, 'reload.yaml');
  const text =
    'upstreams: [{kind: vllm, urls: ["http://a:1"], key: env:ENGINE_KEY}]\nsecret: env:SECRET\ntenants: [{name: acme, keys: [env:ACME]}]\n';
  const read = (): Loaded => {
    const file = loadConfig(path, { variables: keys, flags: {} });
    assert.ok(!('lines' in file), JSON.stringify(file));
    return {
      file,
      options: parseServeOptions({}, { ...WORLD, variables: keys }, { ...file, bounds: boundsOf(file.leaves) }),
    };
  };
  writeFileSync(path, text);
  const said: string[] = [];
  const applied: ServeOptions[] = [];
  const reloader = new ConfigReloader(
    {
      flags: {},
      load: read,
      apply: (next) => applied.push(next),
      log: (line) => said.push(line),
      findings: { record: () => {} },
      registry: new Registry(),
    },
    read(),
  );
  const reload = (): string => {
    said.length = 0;
    return `${reloader.reload('SIGHUP')} ${said.join(' ')}`;
  };
  keys.ENGINE_KEY = 'sk-engine-0002';
  assert.match(reload(), /^restart-needed .*a restart is needed for `upstreams\[0\]\.key`/);
  keys.ENGINE_KEY = VARIABLES.ENGINE_KEY;
  keys.SECRET = 'another-secret';
  assert.match(reload(), /a restart is needed for `secret`/);
  keys.SECRET = VARIABLES.SECRET;
  writeFileSync(path, text.replace('http://a:1', 'http://b:1'));
  assert.match(reload(), /a restart is needed for `upstreams\[0\]\.urls`/);
  writeFileSync(path, text.replace('kind: vllm', 'kind: auto'));
  assert.match(reload(), /a restart is needed for `upstreams\[0\]\.kind`/);
  assert.equal(applied.length, 0);
  writeFileSync(path, text.replace('acme', 'globex'));
  assert.match(reload(), /^applied /);
  assert.ok(!JSON.stringify([...said, ...applied]).includes('sk-'));
});

describe('engines by flags', () => {
  const refused = (flags: ServeFlags): string => {
    try {
      parseServeOptions(flags, WORLD);
    } catch (thrown) {
      return (thrown as Error).message;
    }
    return assert.fail('it was let through');
  };

  test('are refused in words where they can not be meant so, and nothing of a key is repeated', () => {
    assert.match(refused({ upstream: ['127.0.0.1:8000'] }), /to be `http:\/\/HOST:PORT`/);
    assert.match(refused({ upstream: ['http://me:sk-word@a:1'] }), /one with a user or a password/);
    assert.ok(!refused({ upstream: ['http://me:sk-word@a:1'] }).includes('sk-word'));
    assert.match(refused({ upstream: ['http://a:1?x=1'] }), /a query or a fragment/);
    assert.match(refused({ upstream: ['http://a:1#port=1'] }), /Expected `kind=KIND` or `bootstrap=PORT` behind `#`/);
    assert.match(refused({ upstream: ['http://a:1#kind=sglang-pd'] }), /Expected `kind=` of `--upstream` to be `auto`/);
    assert.match(
      refused({ upstream: ['http://a:1', 'http://a:1/v1/'] }),
      /each `--upstream` once, got `http:\/\/a:1\/` twice/,
    );
    assert.match(
      refused({ upstream: ['http://a:1'], engineKey: 'sk-word' }),
      /`--engine-key` to be `env:NAME` or `file:PATH`, got something else/,
    );
    assert.match(refused({ upstream: ['http://a:1'], upstreamLimit: '1' }), /`--upstream-limit` to be a whole number/);
    assert.match(refused({ tlsCert: 'a.pem' }), /`--tls-cert` and `--tls-key` together/);
    assert.match(
      refused({ upstream: ['http://a:1'], zeroOnRelease: true }),
      /Expected `--zero-on-release` without engines/,
    );
  });

  test('warn where a key would go over a network in clear', () => {
    const far = { host: '0.0.0.0', opsKey: `sha256:${'a'.repeat(64)}` };
    assert.match(parseServeOptions(far, WORLD).warnings.join(), /both ports speak http beyond loopback/);
    const secure = { ...far, tlsCert: 'cert.pem', tlsKey: 'key.pem' };
    assert.deepEqual(parseServeOptions(secure, WORLD).warnings, []);
    const warnings = (url: string): readonly string[] =>
      parseServeOptions({ upstream: [url], engineKey: 'env:ENGINE_KEY' }, WORLD).warnings;
    assert.match(warnings('http://engine.example:8000').join(), /go to `engine\.example:8000` in clear/);
    assert.deepEqual([...warnings('https://engine.example'), ...warnings('http://127.0.0.1:1')], []);
  });
});
