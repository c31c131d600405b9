/**
 * Goal: what `cofferdam marker` prints is what a server with the same file holds to be live, from its start and after a reload. Method:
 * the verb with an io that remembers; what `serve` starts, in this process, over a double that speaks another tenant's marker.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { VllmDouble } from '../../test/support/vllm-double.js';
import { MARKER_SECRET_BYTES_MIN } from '../markers/marker.js';
import { type ChatMessage, countTokens, renderChat } from '../tokenizer/bytes.js';
import { boundsOf } from './config-bounds.js';
import { loadConfig } from './config-file.js';
import { parseServeOptions, type ServeOptions } from './options.js';
import { runProgram } from './program.js';
import { startServing } from './serve-run.js';

const VARIABLES = {
  ACME: 'sk-acme-0001',
  GLOBEX: 'sk-globex-0001',
  MARKERS: 'a-secret-of-markers-0001',
  SHORT: 'short',
};
const TENANTS = 'tenants: [{name: acme, keys: [env:ACME]}, {name: globex, keys: [env:GLOBEX]}]\n';
const MARKERS = 'markers: {secret: env:MARKERS, periods: [2026-10, 2026-11], per-tenant: 4}\n';

let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'cofferdam-marker-'));
});
after(() => rmSync(folder, { recursive: true }));

let files = 0;
function write(text: string): string {
  const path = join(folder, `${++files}.yaml`);
  writeFileSync(path, text);
  return path;
}

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const said = { out: '', err: '' };
  const io = {
    out: (text: string): void => {
      said.out += text;
    },
    err: (text: string): void => {
      said.err += text;
    },
    variables: VARIABLES,
    outIsTerminal: false,
  };
  const code = await runProgram(['marker', ...args], io, { faultNames: () => Promise.resolve([]) });
  return { code, ...said };
}

/** The markers that are printed. */
async function printed(...args: string[]): Promise<string[]> {
  const { code, out, err } = await run(...args);
  assert.deepEqual([code, err], [0, '']);
  return out.trimEnd().split('\n');
}

describe('`cofferdam marker TENANT`', () => {
  test('prints a marker of the last period of the file, the same each time, and others by number and period', async () => {
    const config = write(TENANTS + MARKERS);
    const [first] = await printed('globex', '--config', config);
    assert.match(first!, /^KVC-[a-z2-7]{26}$/);
    const all = await printed('globex', '--config', config, '--count', '4');
    assert.equal(all[0], first);
    const earlier = await printed('globex', '--config', config, '--period', '2026-10', '--count', '4');
    const acmes = await printed('acme', '--config', config, '--index', '1', '--count', '3');
    assert.equal(new Set([...all, ...earlier, ...acmes]).size, 11);
  });

  test('needs no file where it is told secret and period, and then says what the file would', async () => {
    const config = write(TENANTS + MARKERS);
    const told = await printed('globex', '--secret', 'env:MARKERS', '--period', '2026-11');
    assert.deepEqual(told, await printed('globex', '--config', config));
    const [line] = await printed('globex', '--secret', 'env:MARKERS', '--period', '2026-11', '--output', 'json');
    assert.deepEqual(JSON.parse(line!), { marker: told[0], tenant: 'globex', period: '2026-11', index: 0 });
  });

  const markersFile = (): string => write(TENANTS + MARKERS);
  const wrong: [string, () => string[], RegExp][] = [
    ['a tenant that the file does not name', () => ['initech', '--config', markersFile()], /a tenant that .* names/],
    ['a name that is none', () => ['Not One', '--config', markersFile()], /the name of the tenant/],
    [
      'a period that is not live',
      () => ['acme', '--config', markersFile(), '--period', '2025-01'],
      /one that is live \(`2026-10`, `2026-11`\)/,
    ],
    [
      'a number past those that are live',
      () => ['acme', '--config', markersFile(), '--index', '4'],
      /`--index` to be a whole number from 0 to 3/,
    ],
    [
      'more than there are',
      () => ['acme', '--config', markersFile(), '--count', '5'],
      /`--count` to be a whole number from 1 to 4/,
    ],
    ['a file without markers', () => ['acme', '--config', write(TENANTS)], /to say `markers`, got nothing/],
    ['a file that is wrong', () => ['acme', '--config', write('markers: {}\n')], /markers/],
    ['no file', () => ['acme', '--config', join(folder, 'none.yaml')], /none\.yaml/],
    ['a secret without a period', () => ['acme', '--secret', 'env:MARKERS'], /`--period` to name a stretch of time/],
    [
      'a secret that is short',
      () => ['acme', '--secret', 'env:SHORT', '--period', 'x'],
      /at least 16 characters, got 5/,
    ],
    [
      'a secret itself',
      () => ['acme', '--secret', VARIABLES.MARKERS, '--period', 'x'],
      /`--secret` to be `env:NAME` or `file:PATH`/,
    ],
  ];
  for (const [title, args, words] of wrong) {
    test(`refuses ${title}`, async () => {
      const { code, out, err } = await run(...args());
      assert.deepEqual([code, out], [2, '']);
      assert.match(err, words);
      assert.ok(!err.includes(VARIABLES.MARKERS), 'the secret is shown');
    });
  }
});

/** The file as `serve` takes it; else its mistakes. */
function optionsOf(text: string): ServeOptions | readonly string[] {
  const file = loadConfig(write(text), { variables: VARIABLES, flags: {} });
  if ('lines' in file) return file.lines;
  return parseServeOptions({}, { variables: VARIABLES, faultNames: [] }, { ...file, bounds: boundsOf(file.leaves) });
}

describe('`markers` in the file', () => {
  const wrong: [string, string, RegExp][] = [
    [
      'a secret that is short',
      'markers: {secret: env:SHORT, periods: [a]}',
      new RegExp(`at least ${MARKER_SECRET_BYTES_MIN} characters.*got \`?5`),
    ],
    ['no period', 'markers: {secret: env:MARKERS, periods: []}', /markers\.periods/],
    ['no secret', 'markers: {periods: [a]}', /markers\.secret/],
    ['a secret itself', `markers: {secret: ${VARIABLES.MARKERS}, periods: [a]}`, /`markers\.secret` to be/],
    [
      'more of them than an index takes',
      `${TENANTS}markers: {secret: env:MARKERS, periods: [a, b, c, d, e], per-tenant: 1024}`,
      /at most 10000 markers.*got `?10240/,
    ],
  ];
  for (const [title, text, words] of wrong) {
    test(`with ${title} is a mistake, with its place`, () => {
      const lines = optionsOf(text);
      assert.ok(Array.isArray(lines), 'it was let through');
      assert.match(lines.join('\n'), words);
      assert.ok(!lines.join('\n').includes(VARIABLES.MARKERS), 'the secret is shown');
    });
  }

  for (const [title, before] of [
    ['are live from the start', '2026-11'],
    ['are live after a reload', '2026-10'],
  ] as const) {
    test(`${title}: the answer that holds another tenant’s is withheld`, async () => {
      const double = new VllmDouble();
      const url = await double.listen();
      const config = (periods: string): string =>
        `${TENANTS}listen: {port: 0}\noperators: {port: 0}\nupstreams: [{kind: vllm, urls: ['${url}']}]\nmarkers: {secret: env:MARKERS, periods: [${periods}]}\n`;
      const of = (text: string): ServeOptions => {
        const options = optionsOf(text);
        assert.ok('tenants' in options, JSON.stringify(options));
        return options;
      };
      const [planted] = await printed('globex', '--config', write(config('2026-11')));
      double.instead = ({ path, body }, response) => {
        if (path !== '/v1/chat/completions') return false;
        const prompt = countTokens(renderChat(body.messages as ChatMessage[]));
        const usage = { prompt_tokens: prompt, completion_tokens: 9 };
        const choices = [{ index: 0, message: { role: 'assistant', content: planted }, finish_reason: 'stop' }];
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices, usage }));
        return true;
      };
      const serving = await startServing(of(config(before)));
      try {
        const ask = async (key: string): Promise<string> => {
          const response = await fetch(`${serving.facts.url}/v1/chat/completions`, {
            method: 'POST',
            headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
            body: JSON.stringify({ model: 'tiny', max_tokens: 32, messages: [{ role: 'user', content: 'hello' }] }),
          });
          return `${response.status} ${await response.text()}`;
        };
        if (before !== '2026-11') {
          assert.match(await ask(VARIABLES.ACME), /^200 .*KVC-/, 'of a period that is not live it says nothing');
          serving.reconfigure(of(config('2026-10, 2026-11')));
        }
        assert.match(await ask(VARIABLES.GLOBEX), /^200 .*KVC-/, 'its owner gets it');
        const withheld = await ask(VARIABLES.ACME);
        assert.match(withheld, /^502 .*verification_failed/);
        assert.ok(!withheld.includes('KVC-'));
        const finding = serving.findings.list().find(({ id }) => id === 'foreign-marker');
        assert.match(finding?.observed ?? '', /marker of globex.*an answer to acme/);
      } finally {
        await serving.close();
        await double.close();
      }
    });
  }

  test('are read with their secret kept from sight', async () => {
    const options = optionsOf(TENANTS + MARKERS);
    assert.ok('tenants' in options);
    assert.deepEqual(
      { ...options.running.markers, secret: String(options.running.markers?.secret) },
      { secret: '(secret)', periods: ['2026-10', '2026-11'], perTenant: 4, holdBack: null },
    );
  });
});
