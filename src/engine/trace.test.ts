/**
 * Goal: what the engine does is what the protocol allows, and each fault is seen in its trace at the record where it begins. Method: the
 * whole engine in one thread with a tap on its machines, a storm of aborts, a restart, and faults; the trace is read back and held
 * against the protocol.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../base/clock.js';
import { Prng } from '../base/prng.js';
import type { FaultName } from '../handoff/faults.js';
import { TraceReader, TraceWriter } from '../handoff/trace.js';
import { encode } from '../tokenizer/bytes.js';
import { Conformance, type Deviation } from '../verify/conform.js';
import { engineConfig, type EngineOptions } from './config.js';
import { InlineEngine } from './inline-engine.js';

const SEED = Number(process.env.SEED ?? 7);
const SIZES = { context: 512, prefillPool: 512, decodePool: 512, runningMax: 6, pageTokens: 16 } as const;

class Traced {
  readonly lines: string[] = [];
  readonly engine: InlineEngine;
  readonly writer: TraceWriter;

  constructor(options: EngineOptions = {}) {
    this.engine = new InlineEngine(engineConfig({ ...SIZES, ...options }), new ManualClock());
    this.writer = new TraceWriter((line) => this.lines.push(line));
    for (const { machine } of [this.engine.coordinator, this.engine.prefill, this.engine.decode]) {
      this.writer.attach(machine);
    }
  }

  submit(prompt: string, tenant: number, maxTokens = 8): { abort(): void; isOver(): boolean } {
    let isOver = false;
    const run = this.engine.coordinator.submit(
      {
        tenant,
        salt: String(tenant).repeat(64),
        prompt: encode(prompt),
        maxTokens,
        temperature: 0,
        seed: 1,
        room: null,
        handle: null,
      },
      {
        started: () => {},
        token: () => {},
        end: () => {},
        released: () => {
          isOver = true;
        },
      },
    );
    return { abort: () => run.abort(), isOver: () => isOver };
  }
}

function conform(lines: readonly string[]): { deviation: Deviation | null; explained: number } {
  const reader = new TraceReader();
  const conformance = new Conformance();
  for (const line of lines) {
    const record = reader.take(line);
    if (record !== null) conformance.take(record);
  }
  if (reader.isWhole) conformance.finish();
  return conformance;
}

/** Requests of two tenants, most of which leave at some moment. */
function storm(traced: Traced, prng: Prng, isSound = true): void {
  const runs = Array.from({ length: 12 }, (_, i) =>
    traced.submit('a prompt that is told again and again. '.repeat(prng.between(1, 9)), 1 + (i % 2)),
  );
  for (const run of runs) {
    const turns = prng.between(0, 12);
    for (let turn = 0; turn < turns; turn++) traced.engine.turn();
    if (prng.chance(0.7)) run.abort();
  }
  const isOver = traced.engine.runUntil(() => runs.every((run) => run.isOver()));
  // With a fault some may never end, or only when a clock moves that here stands still.
  if (isSound) assert.ok(isOver);
  traced.writer.end();
}

test(`a storm of aborts conforms, record by record (seed ${SEED})`, () => {
  const traced = new Traced();
  storm(traced, new Prng(SEED));
  const { deviation, explained } = conform(traced.lines);
  assert.equal(deviation, null);
  assert.equal(explained, traced.lines.length - 5);
  assert.ok(explained > 200, `${explained} steps`);
});

test('the trace holds numbers and names of the protocol, and no word of a prompt', () => {
  const traced = new Traced();
  storm(traced, new Prng(SEED));
  assert.doesNotMatch(traced.lines.join('\n'), /prompt that|told again|"salt":143165576/);
});

test('a prefill that restarts in the middle of the storm conforms, whatever the order in which the file has it', () => {
  const traced = new Traced();
  const runs = [1, 2, 1].map((tenant) => traced.submit('a prompt of some length. '.repeat(12), tenant));
  for (let turn = 0; turn < 3; turn++) traced.engine.turn();
  traced.engine.restartPrefill();
  traced.writer.attach(traced.engine.prefill.machine);
  assert.ok(traced.engine.runUntil(() => runs.every((run) => run.isOver())));
  traced.writer.end();
  assert.equal(conform(traced.lines).deviation, null);
  assert.ok(traced.lines.some((line) => line.includes('"event":"prefillDown"')));
});

/** Faults that a storm triggers, and the event at which the first machine does what the protocol does not allow. */
const SEEN: readonly (readonly [FaultName, RegExp])[] = [
  ['count-unchecked', /prefill takes "(?:chunk|settled)"/],
  ['reuse-before-drain', /decode takes "abort"/],
  ['room-collision', /gateway takes "submit"/],
];

for (const [fault, words] of SEEN) {
  test(`${fault} is seen in the trace of its run`, () => {
    const traced = new Traced({ faults: [fault] });
    storm(traced, new Prng(SEED), false);
    const { deviation } = conform(traced.lines);
    assert.match(deviation?.words ?? 'nothing', words);
  });
}

const tell = (lines: readonly string[], change: (line: string) => string | null): string[] =>
  lines.map((line) => change(line)).filter((line) => line !== null);

function oneRequest(): string[] {
  const traced = new Traced();
  const run = traced.submit('one prompt', 1);
  assert.ok(traced.engine.runUntil(() => run.isOver()));
  traced.writer.end();
  return traced.lines;
}

test('a message that nobody sent is named by its record', () => {
  const lines = oneRequest();
  const at = lines.findIndex((line) => line.includes('"event":"complete"'));
  const forged = tell(lines, (line) => (line === lines[at] ? line.replace(/"tokens":\d+/, '"tokens":3') : line));
  const { deviation } = conform(forged);
  // Lines are one ahead of records: the first is the head.
  assert.equal(deviation?.record, at);
  assert.match(
    deviation?.words ?? '',
    /decode takes "complete" for slot 0, attempt 1, and nothing in the trace allows that: it was never sent/,
  );
});

test('writes that settle and were never posted are no order of the protocol', () => {
  const lines = oneRequest();
  const more = tell(lines, (line) =>
    line.includes('"event":"settled"') ? line.replace(/"pages":\d+/, '"pages":99') : line,
  );
  assert.match(conform(more).deviation?.words ?? '', /more writes than were posted/);
});

test('records of different machines may stand in any order that keeps each machine’s own', () => {
  const lines = oneRequest();
  const records = lines.slice(1, -1);
  const byActor = ['decode', 'prefill', 'gateway'].flatMap((actor) =>
    records.filter((line) => line.includes(`"actor":"${actor}"`)),
  );
  const renumbered = byActor.map((line, i) => line.replace(/"n":\d+/, `"n":${i + 1}`));
  const { deviation, explained } = conform([lines[0] as string, ...renumbered, lines.at(-1) as string]);
  assert.deepEqual([deviation, explained], [null, records.length - 3]);
});

test('a trace of another kind or version, with a gap, or with no JSON in it is refused by its line', () => {
  const lines = oneRequest();
  const wrong: readonly (readonly [(line: string, at: number) => string | null, RegExp])[] = [
    [(line) => line.replace('"version":1', '"version":2'), /line 1 of the trace to be of version 1, got `2`/],
    [(line) => line.replace('cofferdam-handoff', 'spans'), /line 1 of the trace to be the head/],
    [(line, at) => (at === 5 ? null : line), /line 6 of the trace to be record 5, got `6`/],
    [
      (line, at) => (at === 5 ? line.slice(0, 20) : line),
      /line 6 of the trace to be one whole record of JSON \(is the trace cut\?\)/,
    ],
    [
      (line, at) => (at === 5 ? line.replace(/"event":"\w+"/, '"event":"boom"') : line),
      /an event of the protocol, got `boom`/,
    ],
    [(line, at) => (at === 1 ? line.replace(/"slots":\d+/, '"slots":-1') : line), /a life with sizes/],
  ];
  for (const [change, words] of wrong) {
    const changed = lines.map((line, at) => change(line, at)).filter((line) => line !== null);
    assert.throws(() => conform(changed), words);
  }
});

test('a trace without its last line is cut: what it has conforms, and no more is said', () => {
  const lines = oneRequest();
  for (let kept = 1; kept < lines.length; kept++) {
    const reader = new TraceReader();
    const conformance = new Conformance();
    for (const line of lines.slice(0, kept)) {
      const record = reader.take(line);
      if (record !== null) conformance.take(record);
    }
    assert.deepEqual([reader.isWhole, conformance.deviation], [false, null]);
  }
});
