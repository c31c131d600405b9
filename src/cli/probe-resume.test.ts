/** Goal: a run that is stopped reports what was done, and goes on later. Method: the command in a process of its own, and its records. */
import assert from 'node:assert/strict';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withFolder } from '../../test/support/audit-verb.js';
import { runProbeVerbHere, startEndpoint, TWO, VARIABLES } from '../../test/support/probe-endpoint.js';
import { startProgram, untilSaid } from '../../test/support/program.js';

interface Said {
  readonly verdict: string;
  readonly stopped: string | null;
  readonly whole: boolean;
  readonly experiments: readonly { readonly name: string; readonly verdict: string; readonly control: string }[];
}

const recordsOf = (file: string): Record<string, unknown>[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test(
  'Ctrl-C reports what was done, and the run goes on in the same file with the finished experiments taken over',
  withFolder(async (folder) => {
    let hanging = true;
    // Prompts that plant a marker many times are the canary's.
    const endpoint = await startEndpoint(({ prompt }, usual) =>
      hanging && (prompt.match(/The code of/g)?.length ?? 0) > 3 && prompt.includes('KVC-') ? 'hang' : usual,
    );
    const record = join(folder, 'r.jsonl');
    const args = [endpoint.url, ...TWO, '--only', 'boundary,canary'];
    try {
      const program = startProgram(['probe', ...args, '--record', record, '--output', 'json'], VARIABLES);
      await untilSaid(program, () => program.err().includes('canary: begins'));
      program.child.kill('SIGINT');
      const { code, out, err } = await program.ended;
      assert.equal(code, 3, err);
      const said = JSON.parse(out) as Said;
      assert.deepEqual(
        said.experiments.map(({ name, verdict }) => `${name} ${verdict}`),
        ['boundary isolated', 'canary no-power'],
      );
      assert.equal(said.stopped, 'the operator stopped it');
      assert.match(err, /once more ends at once/);

      hanging = false;
      const before = endpoint.posted.length;
      // As if it had been killed while it wrote.
      appendFileSync(record, '{"record":"req');
      const again = await runProbeVerbHere([...args, '--resume', record, '--output', 'json']);
      assert.equal(again.code, 0, again.err);
      const done = JSON.parse(again.out) as Said;
      assert.equal(done.verdict, 'isolated');
      assert.match(again.err, /taken over from .*: boundary\n/);
      assert.ok(!again.err.includes('boundary: begins'));
      assert.ok(endpoint.posted.length - before < 140, 'the boundary was sent again');
      const converted = await runProbeVerbHere(['--convert', record, '--output', 'json']);
      assert.equal(converted.out, again.out);
      const ids = recordsOf(record)
        .filter((each) => each.record === 'request')
        .map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length, 'an id stands twice');
    } finally {
      await endpoint.close();
    }
  }),
);

test(
  'a run goes on only with the endpoint, model, route and tenants that it began with',
  withFolder(async (folder) => {
    const endpoint = await startEndpoint();
    const record = join(folder, 'r.jsonl');
    try {
      await runProbeVerbHere([endpoint.url, ...TWO, '--only', 'canary', '--record', record]);
      const before = endpoint.posted.length;
      const size = readFileSync(record).length;
      for (const [args, words] of [
        [
          ['http://127.0.0.1:9/v1', ...TWO],
          /Expected the endpoint of the earlier run, `http:\/\/127\.0\.0\.1:\d+`, got `http:\/\/127\.0\.0\.1:9`/,
        ],
        [[endpoint.url, ...TWO, '--model', 'other'], /Expected the model of the earlier run, `lab`, got `other`/],
        [[endpoint.url, ...TWO, '--route', 'chat'], /Expected the route of the earlier run/],
        [
          [endpoint.url, '--tenant', 'a=env:KEY_A', '--model', 'lab'],
          /Expected the tenants of the earlier run, `a,b`, got `a`/,
        ],
      ] as const) {
        const { code, err } = await runProbeVerbHere([...args, '--resume', record]);
        assert.equal(code, 2);
        assert.match(err, words);
      }
      assert.equal(endpoint.posted.length, before);
      assert.equal(readFileSync(record).length, size);
      const other = join(folder, 's.jsonl');
      const { code } = await runProbeVerbHere([
        endpoint.url,
        ...TWO,
        '--only',
        'canary',
        '--resume',
        record,
        '--record',
        other,
      ]);
      assert.equal(code, 0);
      assert.equal(readFileSync(record).length, size, 'with --record, the earlier file stays as it is');
      assert.equal(recordsOf(other).at(-1)!.record, 'end');
    } finally {
      await endpoint.close();
    }
  }),
);

test(
  'a record that is cut is reported as far as it goes and never as isolated; one of something else is refused with its line',
  withFolder(async (folder) => {
    const endpoint = await startEndpoint();
    const record = join(folder, 'r.jsonl');
    try {
      await runProbeVerbHere([endpoint.url, ...TWO, '--only', 'boundary,canary', '--record', record]);
    } finally {
      await endpoint.close();
    }
    const text = readFileSync(record, 'utf8');
    const lines = text.trim().split('\n');
    const file = join(folder, 'x.jsonl');
    const convert = async (content: string): Promise<{ code: number; out: string; err: string }> => {
      writeFileSync(file, content);
      return runProbeVerbHere(['--convert', file, '--output', 'json']);
    };
    const cut = await convert(text.slice(0, text.lastIndexOf('"name":"canary"')));
    assert.equal(cut.code, 3);
    const said = JSON.parse(cut.out) as Said;
    assert.equal(said.verdict, 'could-not-run');
    assert.equal(said.whole, false);
    assert.match(cut.err, /The last line of the record is cut/);
    assert.match(cut.err, /has no end/);

    const withoutEnd = await convert(lines.slice(0, -1).join('\n'));
    assert.equal(withoutEnd.code, 0, 'every experiment is in it');
    assert.match(withoutEnd.err, /has no end/);

    for (const [content, words] of [
      ['', /a file without any/],
      ['{"a":1}\n', /line 1: no header of a run/],
      ['# notes\n', /line 1: no JSON/],
      [lines.with(5, 'nonsense').join('\n'), /line 6: no JSON/],
      [
        lines.with(0, lines[0]!.replace('"version":1', '"version":9')).join('\n'),
        /line 1: .*expected `version` to be 1, got `9`/,
      ],
      [
        lines.map((line) => line.replace('"verdict":"isolated"', '"verdict":"fine"')).join('\n'),
        /expected `verdict` to be one of isolated, leaks/,
      ],
    ] as const) {
      const { code, out, err } = await convert(content);
      assert.equal(code, 2, content.slice(0, 80));
      assert.equal(out, '');
      assert.match(err, words);
    }
    const missing = await runProbeVerbHere(['--convert', join(folder, 'none')]);
    assert.equal(missing.code, 2);
    assert.match(missing.err, /ENOENT/);
  }),
);

test(
  'what would be overwritten is refused before anything is sent',
  withFolder(async (folder) => {
    const endpoint = await startEndpoint();
    const there = join(folder, 'there');
    writeFileSync(there, 'kept');
    try {
      for (const flags of [
        ['--record', there],
        ['--record', join(folder, 'r.jsonl'), '--repro', there],
        ['--output', `html=${folder}/no/such.html`],
        ['--output', 'jsonl'],
      ]) {
        const { code } = await runProbeVerbHere([endpoint.url, ...TWO, ...flags]);
        assert.equal(code, 2, flags.join(' '));
      }
      assert.equal(readFileSync(there, 'utf8'), 'kept');
      assert.equal(endpoint.posted.length, 0);
    } finally {
      await endpoint.close();
    }
  }),
);
