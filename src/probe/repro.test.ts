/** Goal: the script that replays a hit is safe to keep and to run. Method: hits of every kind; the shell itself reads the script. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import type { Ask, PlainAsk } from './client.js';
import { replaysBetter, scriptOf } from './repro.js';
import type { Hit } from './result.js';

const MARKER = 'KVC-abcdefghijklmnopqrstuvwxyz';
const TENANTS = [
  { name: 'a', key: 'sk-of-a' },
  { name: 'b-1', key: 'sk-of-b' },
  { name: 'b_1', key: null },
  { name: 'open', key: null },
];
const TARGET = {
  origin: new URL('http://127.0.0.1:8080/'),
  tenants: TENANTS,
  model: 'it\'s $(a) "model"',
  route: 'completions' as const,
};

const HIT: Hit = {
  experiment: 'canary',
  request: 'q-2',
  tenant: 'b-1',
  owner: 'a',
  marker: MARKER,
  planted: 'q-1',
  place: 'choices.*.text',
  offset: 0,
  length: 12,
  markerOffset: 5,
  sentMs: 1,
  endMs: 2,
  promptCharacters: 3,
  promptTokens: null,
  overlapMs: 20,
  leftBefore: ['q-0'],
};

const PLANTING: Ask = {
  tenant: TENANTS[0]!,
  prompt: `It's $HOME \`id\` ${MARKER}`,
  maxTokens: 4,
  stream: false,
  deadlineMs: 1,
};
const READING: PlainAsk = {
  tenant: TENANTS[1]!,
  method: 'POST',
  path: "/v1/it's/%2e%2e/x",
  body: '{"a":"$(touch /tmp/never)"}',
  headers: { 'x-odd': "it's `odd`" },
  deadlineMs: 1,
};

test('the shell reads the script, whatever stands in prompts, paths and headers, and it holds no key', () => {
  const script = scriptOf(TARGET, { hit: HIT, requests: { reading: READING, planting: PLANTING } }, '1.0');
  execFileSync('sh', ['-n'], { input: script });
  assert.ok(!script.includes('sk-of'));
  assert.match(script, /\$\{KEY_A:\?set KEY_A/);
  assert.match(script, /\$\{KEY_B_1:\?set KEY_B_1/);
  assert.ok(script.includes(`fragment='${MARKER.slice(5, 17)}'`));
  // What is quoted comes out of the shell as it went in.
  const bodies = script
    .split("<<'COFFERDAM_BODY'\n")
    .slice(1)
    .map((part) => part.split('\nCOFFERDAM_BODY')[0]!);
  assert.equal((JSON.parse(bodies[0]!) as { prompt: string }).prompt, PLANTING.prompt);
  assert.equal(bodies[1], READING.body);
  const header = /^ {2}(printf '%s\\n' 'x-odd.*)$/m.exec(script)![1]!;
  assert.equal(execFileSync('sh', ['-c', header], { encoding: 'utf8' }), "x-odd: it's `odd`\n");
  assert.match(script, /planting &/);
  const apart = scriptOf(
    TARGET,
    { hit: { ...HIT, overlapMs: 0 }, requests: { reading: READING, planting: PLANTING } },
    '1.0',
  );
  assert.ok(!apart.includes('planting &'));
});

test('without its key, the script sends nothing', () => {
  const script = scriptOf(TARGET, { hit: HIT, requests: { reading: READING, planting: null } }, '1.0');
  assert.match(script, /The request that planted it is not known/);
  assert.throws(
    () => execFileSync('sh', [], { input: script, env: { PATH: process.env.PATH }, stdio: 'pipe' }),
    /set KEY_B_1/,
  );
});

test('a hit whose two requests are known replays best, and one of somebody outside not at all', () => {
  const known = { hit: HIT, requests: { reading: READING, planting: PLANTING } };
  const half = { hit: HIT, requests: { reading: READING, planting: null } };
  assert.ok(replaysBetter(null, half) && replaysBetter(half, known));
  assert.ok(!replaysBetter(known, half) && !replaysBetter(known, known));
  assert.ok(!replaysBetter(null, { ...half, hit: { ...HIT, marker: null } }));
});
