/** Goal: the probe's options from a file are those of the flags. Method: files, good and bad, and the example of the documentation. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withFolder } from '../../test/support/audit-verb.js';
import { KEY_A, runProbeVerbHere, startEndpoint, VARIABLES } from '../../test/support/probe-endpoint.js';
import { withProbeConfig } from './probe-config.js';
import type { ProbeFlags } from './probe-flags.js';
import { parseProbeOptions } from './probe-options.js';

const LOADED = `url: http://127.0.0.1:8080/v1
tenants:
  - { name: a, key: env:KEY_A }
  - { name: b, key: env:KEY_B }
model: lab
only: [canary]
budget:
  tokens: 2M
  duration: 90s
price: 0.15
bound: "0.1"
keep-text: true
`;

function flagsOf(text: string, folder: string, flags: ProbeFlags = {}): { url: string | null; flags: ProbeFlags } {
  const config = join(folder, 'probe.yaml');
  writeFileSync(config, text);
  const given = withProbeConfig(null, { ...flags, config });
  assert.ok('flags' in given, JSON.stringify(given));
  return given;
}

test(
  'a file says what flags would say, and flags override it',
  withFolder((folder) => {
    const given = flagsOf(LOADED, folder, { budgetTokens: '9', seed: '4' });
    const options = parseProbeOptions(given.url, given.flags, VARIABLES);
    assert.equal(options.target.origin.href, 'http://127.0.0.1:8080/');
    assert.deepEqual(
      options.target.tenants.map(({ name }) => name),
      ['a', 'b'],
    );
    assert.deepEqual(options.only, ['canary']);
    assert.deepEqual([options.limits.tokens, options.limits.durationMs], [9, 90_000]);
    assert.deepEqual([options.price, options.bound, options.seed, options.keepText], [0.15, 0.1, 4, true]);
    return Promise.resolve();
  }),
);

test(
  'every mistake of a file comes with line and column, and a key that stands in it is not repeated',
  withFolder(async (folder) => {
    const file = join(folder, 'probe.yaml');
    writeFileSync(
      file,
      `tenants:\n  - { name: A, key: ${KEY_A} }\nmodle: lab\nbudget: { tokens: lots, duration: 5 }\nonly: [everything]\n`,
    );
    const { code, err } = await runProbeVerbHere(['http://127.0.0.1:9/v1', '--config', file]);
    assert.equal(code, 2);
    const lines = err.trim().split('\n');
    assert.equal(lines.length, 6);
    for (const line of lines) assert.match(line, /^error: .*probe\.yaml:\d+:\d+: Expected /);
    assert.match(err, /:3:1: .*Did you mean `model`/);
    assert.ok(!err.includes(KEY_A));
    const none = await runProbeVerbHere(['--config', join(folder, 'none.yaml')]);
    assert.equal(none.code, 2);
    assert.match(none.err, /none\.yaml:1:1: Expected a file/);
  }),
);

test(
  'a run of a file alone works, outputs and all',
  withFolder(async (folder) => {
    const endpoint = await startEndpoint();
    const file = join(folder, 'probe.yaml');
    const html = join(folder, 'r.html');
    writeFileSync(
      file,
      `url: ${endpoint.url}\ntenants: [{ name: a, key: env:KEY_A }, { name: b, key: env:KEY_B }]\nmodel: lab\nonly: [canary]\nrecord: ${join(folder, 'r.jsonl')}\noutputs: [json, "html=${html}"]\n`,
    );
    try {
      const { code, out, err } = await runProbeVerbHere(['--config', file]);
      assert.equal(code, 0, err);
      assert.equal((JSON.parse(out) as { verdict: string }).verdict, 'isolated');
      assert.match(readFileSync(html, 'utf8'), /^<!DOCTYPE html>/);
    } finally {
      await endpoint.close();
    }
  }),
);

test(
  'the example of the documentation is a file without mistakes',
  withFolder((folder) => {
    const example = /```yaml\n([\s\S]*?)```/.exec(readFileSync('docs/PROBE.md', 'utf8'))?.[1];
    assert.ok(example !== undefined);
    const given = flagsOf(example, folder);
    assert.ok(parseProbeOptions(given.url, given.flags, VARIABLES).outputs.length > 1);
    return Promise.resolve();
  }),
);
