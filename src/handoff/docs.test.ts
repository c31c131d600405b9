/** Goal: docs/HANDOFF.md says what the code does. Method: names of states, events, invariants, faults and guards, compared both ways. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { DECODE_EVENTS, DecodePhase } from './decode.js';
import { CATALOGUE, FAULTS } from './faults.js';
import { GATEWAY_EVENTS, GatewayPhase } from './gateway.js';
import { GUARDS } from './guards.js';
import { DECODE_INVARIANTS, GATEWAY_INVARIANTS, PREFILL_INVARIANTS } from './invariants.js';
import { EventKind } from './messages.js';
import { PREFILL_EVENTS, PrefillPhase } from './prefill.js';

// Compiled tests run from dist/src/handoff; the page is at the root of the package.
const PAGE = readFileSync(new URL('../../../docs/HANDOFF.md', import.meta.url), 'utf8');
const TIME_AND_EVICTION: readonly string[] = ['timer', 'evict'];

function section(title: string): string {
  const from = PAGE.indexOf(`\n${title}\n`);
  assert.ok(from >= 0, `the page has a section "${title}"`);
  const level = title.split(' ')[0];
  const next = PAGE.slice(from + 1).search(new RegExp(`\\n#{1,${level.length}} `));
  return next < 0 ? PAGE.slice(from) : PAGE.slice(from, from + 1 + next);
}

/** States and events of a mermaid state diagram. Words in brackets explain and do not count. */
function diagram(title: string): { states: Set<string>; events: Set<string> } {
  const states = new Set<string>();
  const events = new Set<string>();
  for (const line of section(title).split('\n')) {
    const match = /^ {2}(\S+) --> (\w+)(?:: (.*))?$/.exec(line);
    const note = /^ {2}note right of \w+: (\w+) /.exec(line);
    if (note?.[1] !== undefined) events.add(note[1]);
    if (match === null) continue;
    for (const state of [match[1], match[2]]) if (state !== undefined && state !== '[*]') states.add(state);
    const named = (match[3] ?? '').replaceAll(/\([^)]*\)/g, '').split(',');
    for (const event of named) if (event.trim() !== '') events.add(event.trim());
  }
  return { states, events };
}

const sorted = (names: Iterable<string>): string[] => [...names].sort();

for (const [title, phases, taken] of [
  ['### Gateway', GatewayPhase, GATEWAY_EVENTS],
  ['### Prefill', PrefillPhase, PREFILL_EVENTS],
  ['### Decode', DecodePhase, DECODE_EVENTS],
] as const) {
  test(`every state of the diagram under "${title}" is in the code, and the other way round`, () => {
    assert.deepEqual(sorted(diagram(title).states), sorted(Object.keys(phases)));
  });

  test(`every event of the diagram under "${title}" is taken by the code, and the other way round`, () => {
    const { events } = diagram(title);
    for (const name of events) assert.ok((taken as readonly string[]).includes(name), `the machine takes ${name}`);
    const missing = taken.filter((name) => !events.has(name) && !TIME_AND_EVICTION.includes(name));
    assert.deepEqual(missing, []);
  });
}

test('every kind of event is taken by some machine', () => {
  const taken = new Set<string>([...GATEWAY_EVENTS, ...PREFILL_EVENTS, ...DECODE_EVENTS]);
  assert.deepEqual(sorted(taken), sorted(Object.keys(EventKind)));
});

test('the events that a machine says it takes are the cases of its step', () => {
  for (const [file, taken] of [
    ['gateway', GATEWAY_EVENTS],
    ['prefill', PREFILL_EVENTS],
    ['decode', DECODE_EVENTS],
  ] as const) {
    const source = readFileSync(new URL(`../../../src/handoff/${file}.ts`, import.meta.url), 'utf8');
    const cases = [...source.matchAll(/case EventKind\.(\w+):/g)].map((match) => match[1] ?? '');
    assert.deepEqual(sorted(cases), sorted(taken), file);
  }
});

test('the page lists the invariants that are checked', () => {
  const checked = [...GATEWAY_INVARIANTS, ...PREFILL_INVARIANTS, ...DECODE_INVARIANTS].map(
    (invariant) => invariant.name,
  );
  const listed = [...section('## The invariants').matchAll(/^- `(\w+)`/gm)].map((match) => match[1] ?? '');
  assert.deepEqual(sorted(listed), sorted(new Set(checked)));
});

test('the table of faults is the catalogue', () => {
  const rows = [
    ...section('## Faults and the guards that stop them').matchAll(/^\| `([\w-]+)` \| (.*) \| (.*) \| (.*) \|$/gm),
  ];
  assert.deepEqual(
    rows.map((row) => row[1]),
    [...FAULTS],
  );
  for (const name of FAULTS) {
    const { deviation, guards, source } = CATALOGUE[name];
    const row = rows.find((candidate) => candidate[1] === name);
    assert.deepEqual(row?.slice(2), [deviation, guards.map((guard) => `\`${guard}\``).join(', '), source]);
  }
});

test('every guard is on the page', () => {
  for (const guard of GUARDS) assert.ok(PAGE.includes(`\`${guard}\``), guard);
});
