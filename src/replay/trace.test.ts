/**
 * Goal: a run in which a fault does its harm leaves a trace that does not conform, at the record where the fault begins, wherever events
 * show it. Method: the replay of each fault on the real engine, traced: with every guard off, with every guard on, and without the fault.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replayUpstream } from '../cli/replay-run.js';
import { type FaultName, FAULTS } from '../handoff/faults.js';
import { ALL_GUARDS } from '../handoff/guards.js';
import { TraceReader, TraceWriter } from '../handoff/trace.js';
import { Conformance } from '../verify/conform.js';
import { SCENARIOS } from './scenarios/all.js';
import { World } from './world.js';

const SEED = Number(process.env.SEED ?? 1);
const IS_LONG = process.env.COFFERDAM_LONG === '1';

interface Row {
  /** What the first record that nothing explains says, with every guard off; null: the fault is not to be seen in events. */
  readonly off: RegExp | null;
  /** With every guard on: null where the guard keeps the machines themselves from deviating. */
  readonly on: RegExp | null;
}

const ROWS: Readonly<Record<FaultName, Row>> = {
  // Which guard is off shows before the fault does: the gateway lets through what it must refuse.
  'rejected-stays-alive': { off: /^gateway takes "submit".*allows guardHit .*has sendDecode "start"/, on: null },
  'unannounced-rejection': { off: /^gateway takes "submit".*allows guardHit .*has sendDecode "start"/, on: null },
  // Prefill is what deviates, whatever the guards of decode make of it.
  'count-unchecked': {
    off: /^prefill takes "settled".*allows nothing more, the trace has pagesFreed/,
    on: /^prefill takes "settled".*allows nothing more, the trace has pagesFreed/,
  },
  'silent-abort': {
    off: /^prefill takes "settled".*allows sendGateway "prefillClosed".*has sendDecode "complete"/,
    on: /^prefill takes "settled".*allows sendGateway "prefillClosed".*has sendDecode "complete"/,
  },
  'reuse-before-drain': { off: /^decode takes "abort".*allows sendPrefill "drain".*has pagesFreed/, on: null },
  'timeout-authorises-reuse': { off: /^decode takes "timeout".*allows alarm.*has pagesFreed/, on: null },
  // The gateway gives a room and an attempt out twice, whatever decode makes of it.
  'room-collision': { off: /^gateway takes "submit".*room 2.*has .*room 1/, on: /^gateway takes "submit".*room 2/ },
  'retry-keeps-attempt': {
    off: /^gateway takes "prefillDown".*allows .*"start" \(attempt 2.*has .*"start" \(attempt 1/,
    on: /^gateway takes "prefillDown".*"start" \(attempt 2.*has .*"start" \(attempt 1/,
  },
  'stale-handle': { off: /^decode takes "attach".*allows guardHit.*has startDecode/, on: null },
  'unfenced-restart': { off: /^decode takes "prefillDown".*allows revoke .*has register/, on: null },
  // The header lands and settles as ever, and with `checksum` off nobody compares: only the bytes differ.
  'torn-write': { off: null, on: null },
  'unsalted-prefix': { off: /^decode takes "hit".*allows guardHit.*has nothing more/, on: null },
  'prefix-hash-collision': { off: /^decode takes "hit".*allows guardHit.*has nothing more/, on: null },
};

async function deviationOf(scene: FaultName, fault: FaultName | null, guards: number): Promise<string | null> {
  const scenario = SCENARIOS[scene];
  const lines: string[] = [];
  const writer = new TraceWriter((line) => lines.push(line));
  const world = await World.open({ fault, guards, seed: SEED, sizes: scenario.sizes ?? {}, upstream: replayUpstream });
  world.engine.trace(writer);
  try {
    await scenario.act(world);
  } finally {
    await world.close();
  }
  writer.end();
  const reader = new TraceReader();
  const conformance = new Conformance();
  for (const line of lines) {
    const record = reader.take(line);
    if (record !== null) conformance.take(record);
  }
  conformance.finish();
  assert.ok(conformance.explained + (conformance.deviation === null ? 0 : 1) > 0, 'the run has events');
  return conformance.deviation?.words ?? null;
}

function assertIs(words: string | null, wanted: RegExp | null): void {
  if (wanted === null) assert.equal(words, null);
  else assert.match(words ?? 'it conforms', wanted);
}

for (const fault of FAULTS) {
  const { off, on } = ROWS[fault];
  const what =
    off === null ? 'is not to be seen in events' : 'is named by the first record that no allowed order explains';
  test(`${fault} with its guards off ${what} (seed ${SEED})`, async () => {
    assertIs(await deviationOf(fault, fault, 0), off);
  });
  test(`${fault} with every guard on (seed ${SEED})`, { skip: !IS_LONG && 'a long one' }, async () => {
    assertIs(await deviationOf(fault, fault, ALL_GUARDS), on);
  });
  test(`the same requests without ${fault} conform (seed ${SEED})`, { skip: !IS_LONG && 'a long one' }, async () => {
    assertIs(await deviationOf(fault, null, ALL_GUARDS), null);
  });
}
