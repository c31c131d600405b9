/** Goal: who waits sees how far a run is. Method: records and a clock of the test. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../base/clock.js';
import type { JournalRecord } from './journal.js';
import { planLines, secondsOf, timeText } from './plan.js';
import { Progress } from './progress.js';
import type { PlannedExperiment } from './result.js';

const planned = (name: string, over: Partial<PlannedExperiment> = {}): PlannedExperiment => ({
  name,
  required: true,
  unfit: null,
  plan: { requests: 100, tokens: 50_000, seconds: null },
  ...over,
});

const request = (experiment: string, status = 200): JournalRecord => ({
  record: 'request',
  experiment,
  id: 'q-1',
  tenant: 'a',
  sentMs: 0,
  endMs: 1,
  prompt: { characters: 1, sha256: '' },
  maxTokens: 1,
  stream: false,
  outcome: 'answered',
  status,
  firstByteMs: 1,
  firstTextMs: 1,
  answer: { characters: 1, sha256: '' },
  usage: { promptTokens: 10, completionTokens: 2, cachedTokens: null },
  finishReason: 'stop',
  error: null,
});

function progressOf(isTerminal: boolean): { clock: ManualClock; progress: Progress; written: string[] } {
  const clock = new ManualClock();
  const written: string[] = [];
  const progress = new Progress(clock, { write: (text) => void written.push(text), isTerminal, columns: 60 });
  progress.plan([planned('canary'), planned('late'), planned('never', { unfit: 'no' })]);
  return { clock, progress, written };
}

test('on a terminal one line is drawn over, at most five times a second, with its rate and the time that is left', () => {
  const { clock, progress, written } = progressOf(true);
  for (let i = 0; i < 40; i++) {
    clock.advance(50);
    progress.take(request('canary', i === 3 ? 429 : 200));
    // The measuring of a prompt is in between, and changes nothing of the count.
    progress.take(request('learn'));
  }
  assert.equal(written.length, 10);
  assert.ok(written.every((text) => text.startsWith('\r\u001b[K') && !text.includes('\n')));
  assert.ok(written.every((text) => text.length <= 64));
  assert.match(written.at(-1)!, /canary \(1 of 2\): 40 of at most 100 requests · 4\d\/s · about/);
  progress.say('canary: isolated');
  assert.deepEqual(written.slice(-2), ['\r\u001b[K', 'canary: isolated\n']);
});

test('elsewhere a plain line comes every ten seconds, and no control character', () => {
  const { clock, progress, written } = progressOf(false);
  for (let i = 0; i < 50; i++) {
    clock.advance(500);
    progress.take(request('canary'));
  }
  assert.equal(written.length, 2);
  for (const text of written)
    assert.match(
      text,
      /^canary \(1 of 2\): \d+ of at most 100 requests · 2\.\d\/s · about \d+ \w+ left of it at most · .*\n$/,
    );
});

test('the plan guesses time from small requests and their tokens, or says that it does not know', () => {
  const knowledge = {
    advertised: 4096,
    advertisedFrom: '/v1/models',
    pool: null,
    acceptLimit: null,
    engine: null,
    engineVersion: null,
    ruler: null,
    codeCharactersPerToken: null,
    streams: true,
    smallMs: 40,
    tokenMs: { least: 0.2, most: 1 },
    nodes: [],
  };
  assert.deepEqual(secondsOf(planned('canary'), knowledge), { least: 1 + 10, most: 1 + 50 });
  const said = planned('canary', { plan: { requests: 1, tokens: 1, seconds: 7 } });
  assert.deepEqual(secondsOf(said, knowledge), { least: 7, most: 7 });
  assert.equal(secondsOf(planned('canary'), { ...knowledge, smallMs: null }), null);
  assert.deepEqual([0.2, 43, 200, 9000].map(timeText), ['about 1 s', 'about 40 s', 'about 3 min', 'about 2.5 h']);
  const limits = { requests: 1000, tokens: 1e9, together: 8, durationMs: 40_000 };
  const context = { knowledge, limits, spent: { requests: 10, tokens: 100 }, price: 3, bound: 0.05 };
  const lines = planLines(
    [planned('canary'), planned('abort-storm'), planned('handles', { unfit: 'it needs two tenants' })],
    context,
  );
  assert.match(lines[0]!, /context 4096 tokens \(\/v1\/models\), pool unknown, prompts are not counted, streams/);
  assert.match(lines.join('\n'), /handles: can not run: it needs two tenants/);
  assert.match(
    lines.join('\n'),
    /in all: at most 200 requests, 100,000 tokens, about 20 s to 2 min, at most 0\.30 at 3 per million tokens/,
  );
  assert.match(lines.join('\n'), /too small: --max-duration 40s may end before abort-storm is through/);
  assert.ok(!lines.some((line) => line.startsWith('no power')));
});
