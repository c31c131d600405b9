/**
 * Goal: with the guards off each fault really does its harm, through attention over pages of another tenant; each guard of the
 * catalogue stops it, alone; and no other does. Method: whole replays, through the gateway, against the catalogue.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { replayUpstream } from '../cli/replay-run.js';
import { CATALOGUE, type FaultName, FAULTS } from '../handoff/faults.js';
import { ALL_GUARDS, type GuardBits, guardBit, guardBits, GUARDS } from '../handoff/guards.js';
import { HIT_CHARACTERS_MIN } from '../markers/marker-index.js';
import { replayFault, type ReplayResult } from './replay.js';

const IS_LONG = process.env.COFFERDAM_LONG === '1';
const SEEDS: readonly number[] = IS_LONG ? [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] : [1];
/** The five that the public reports are about. */
const MAIN: readonly FaultName[] = [
  'rejected-stays-alive',
  'reuse-before-drain',
  'stale-handle',
  'room-collision',
  'count-unchecked',
];
const HARMFUL = FAULTS.filter((name) => CATALOGUE[name].expected.off !== 'answered');

function replay(fault: FaultName, guards: GuardBits, seed = 1): Promise<ReplayResult> {
  return replayFault({ fault, guards, seed, upstream: replayUpstream });
}

function assertHarmless(result: ReplayResult, words: string): void {
  assert.ok(['refused', 'failed-closed', 'answered'].includes(result.outcome), `${words}: ${result.outcome}`);
  assert.equal(result.evidence.markerCharacters, 0);
  if (result.outcome === 'answered') assert.equal(result.evidence.isOwnAnswer, true);
}

describe('what the catalogue says of a fault is what a replay finds', () => {
  for (const fault of FAULTS) {
    const { off, on } = CATALOGUE[fault].expected;
    for (const seed of SEEDS) {
      test(`${fault} is ${off} with every guard off (seed ${seed})`, async () => {
        const { outcome, evidence, stoppedBy, status } = await replay(fault, 0, seed);
        assert.equal(outcome, off);
        assert.ok(evidence.isAsExpected);
        assert.equal(stoppedBy, null);
        if (outcome === 'hung') assert.equal(status, null);
        if (outcome !== 'leaked') return;
        assert.equal(status, 200);
        assert.ok(evidence.markerCharacters >= HIT_CHARACTERS_MIN);
        for (const marker of evidence.markers) {
          assert.ok(marker.pageCount > 0, 'no page in the table held what came out');
          for (const page of marker.pages) assert.equal(page.owner, 'acme');
        }
      });

      test(`${fault} is ${on} with every guard on (seed ${seed})`, async () => {
        const result = await replay(fault, ALL_GUARDS, seed);
        assert.equal(result.outcome, on);
        assertHarmless(result, 'every guard on');
        const { stoppedBy } = result;
        if (off !== 'answered') assert.ok(stoppedBy !== null && CATALOGUE[fault].guards.includes(stoppedBy));
      });
    }
  }
});

describe('each guard of the catalogue stops its fault alone', () => {
  for (const fault of IS_LONG ? HARMFUL : MAIN) {
    for (const guard of CATALOGUE[fault].guards) {
      test(`${guard} stops ${fault}`, async () => {
        const result = await replay(fault, guardBit(guard));
        assertHarmless(result, `only ${guard} on`);
        assert.equal(result.stoppedBy, guard);
        assert.ok(result.evidence.isAsExpected);
      });
    }
  }
});

describe('no other guard stops it', () => {
  for (const fault of HARMFUL) {
    test(`${fault} is ${CATALOGUE[fault].expected.off} with all guards on but those that the catalogue names`, async () => {
      const { outcome, evidence } = await replay(fault, ALL_GUARDS & ~guardBits(CATALOGUE[fault].guards));
      assert.equal(outcome, CATALOGUE[fault].expected.off, JSON.stringify(evidence.guardNotes));
      assert.ok(evidence.isAsExpected);
    });
    if (!IS_LONG) continue;
    for (const guard of GUARDS.filter((name) => !CATALOGUE[fault].guards.includes(name))) {
      test(`${guard} does not stop ${fault}`, async () => {
        assert.equal((await replay(fault, guardBit(guard))).outcome, CATALOGUE[fault].expected.off);
      });
    }
  }
});

for (const fault of IS_LONG ? FAULTS : (['rejected-stays-alive', 'reuse-before-drain', 'torn-write'] as const)) {
  test(`${fault} gives the same for the same seed, and other markers for another`, async () => {
    const first = await replay(fault, 0, 5);
    assert.deepEqual(await replay(fault, 0, 5), first);
    if (first.outcome === 'leaked')
      assert.notDeepEqual((await replay(fault, 0, 6)).evidence.markers, first.evidence.markers);
  });
}

test('docs/REPLAY.md has every fault with its guards, and every guard', () => {
  const doc = readFileSync(new URL('../../../docs/REPLAY.md', import.meta.url), 'utf8');
  for (const fault of FAULTS) {
    const line = doc.split('\n').find((each) => each.startsWith(`- **${fault}**`)) ?? '';
    const named = CATALOGUE[fault].guards.map((guard) => `\`${guard}\``).join(', ');
    assert.ok(line.includes(CATALOGUE[fault].source) && line.endsWith(`Stopped by:_ ${named}.`), fault);
  }
  for (const guard of GUARDS) assert.match(doc, new RegExp(`^\\| \`${guard}\` *\\|`, 'm'));
});
