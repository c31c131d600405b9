/**
 * Goal: the embedded engine behind the contract of all engines. Method: the shared cases over an engine that echoes, then what
 * is the adapter's own: whole characters, engine fields, ends.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runUpstreamCases } from '../../../test/cases/upstream.js';
import { byteCodec } from '../../../test/support/byte-codec.js';
import { ECHO_AHEAD_TOKENS, EchoEngine, type EchoOptions } from '../../../test/support/echo-engine.js';
import { ManualClock, SystemClock } from '../../base/clock.js';
import type { UpstreamEnd, UpstreamRequest } from '../upstream.js';
import { EmbeddedUpstream } from './adapter.js';

function embed(engine: EchoEngine, clock: ManualClock | SystemClock): EmbeddedUpstream {
  return new EmbeddedUpstream({ engine, codec: byteCodec, clock, selfTestTenant: 9 });
}

runUpstreamCases('the embedded adapter', {
  make: () => {
    const clock = new SystemClock();
    return embed(new EchoEngine({ clock }), clock);
  },
});

interface Heard {
  pieces: [string, number][];
  ends: UpstreamEnd[];
  released: number;
}

function start(overrides: Partial<UpstreamRequest>, options: Partial<EchoOptions> = {}) {
  const clock = new ManualClock();
  const engine = new EchoEngine({ clock, ...options });
  const heard: Heard = { pieces: [], ends: [], released: 0 };
  const run = embed(engine, clock).start(
    {
      id: 'f'.repeat(32),
      traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-00`,
      prompt: { kind: 'text', text: 'abc' },
      maxTokens: 100,
      temperature: 0,
      seed: 0,
      tenant: 2,
      salt: 'ff',
      engineFields: {},
      ...overrides,
    },
    {
      started() {},
      text: (piece, tokens) => heard.pieces.push([piece, tokens]),
      piece: () => assert.fail('an engine of bytes sends nothing but text'),
      end: (end) => heard.ends.push(end),
      released: () => heard.released++,
    },
  );
  return { clock, engine, heard, run, request: engine.runs[0]!.request };
}

describe('the embedded adapter', () => {
  test('passes on whole characters with the tokens that made them', () => {
    const { clock, heard } = start({ prompt: { kind: 'text', text: 'é€a' } });
    clock.advance(1);
    assert.deepEqual(heard.pieces, [
      ['é', 2],
      ['€', 3],
      ['a', 1],
    ]);
  });

  test('gives half a character at the end of an answer as U+FFFD, with its tokens', () => {
    const { clock, heard } = start({ prompt: { kind: 'text', text: 'a€' }, maxTokens: 3 });
    clock.advance(1);
    assert.deepEqual(heard.pieces, [
      ['a', 1],
      ['\ufffd', 2],
    ]);
    assert.equal(heard.released, 1);
  });

  test('lets an engine stop ahead of a reader that acknowledges nothing, and go on when it does', () => {
    const { clock, heard, run } = start({ prompt: { kind: 'text', text: 'x'.repeat(90) } });
    clock.advance(1);
    assert.equal(heard.pieces.length, ECHO_AHEAD_TOKENS);
    run.acknowledge(10);
    clock.advance(1);
    assert.equal(heard.pieces.length, ECHO_AHEAD_TOKENS + 10);
  });

  const rooms: [string, Record<string, unknown>, bigint | null][] = [
    ['no room where none was set', {}, null],
    ['a small room as a number', { bootstrap_room: 77 }, 77n],
    ['a 63-bit room as digits', { bootstrap_room: '9046351419888738945' }, 9046351419888738945n],
    ['no room for one above 63 bits', { bootstrap_room: '9946351419888738945' }, null],
    ['no room for a negative number', { bootstrap_room: -1 }, null],
    ['no room for an array', { bootstrap_room: [1] }, null],
  ];
  for (const [title, engineFields, room] of rooms) {
    test(`gives the engine ${title}`, () => assert.equal(start({ engineFields }).request.room, room));
  }

  const handles: [string, Record<string, unknown>, string | null][] = [
    ['none', {}, null],
    ['the one of kv_transfer_params', { kv_transfer_params: { handle: 'h1' } }, 'h1'],
    ['the one inside vllm_xargs', { vllm_xargs: { kv_transfer_params: { handle: 'h2' } } }, 'h2'],
    ['the one of cofferdam_handle', { cofferdam_handle: 'h3' }, 'h3'],
    ['none for a number', { kv_transfer_params: { handle: 3 } }, null],
  ];
  for (const [title, engineFields, handle] of handles) {
    test(`gives the engine as handle ${title}`, () => assert.equal(start({ engineFields }).request.handle, handle));
  }

  test('passes on tenant, salt and seed', () => {
    const { request } = start({ seed: 5 });
    assert.deepEqual([request.tenant, request.salt, request.seed], [2, 'ff', 5]);
  });

  test('turns a failure into its code, message and guard, and keeps the detail for operators', () => {
    const { clock, engine, heard } = start({});
    engine.failWith = { guard: 'tag', message: 'A page was not its own.' };
    clock.advance(1);
    assert.deepEqual(heard.ends, [
      {
        kind: 'failed',
        code: 'engine_failed',
        message: 'A page was not its own.',
        detail: 'for operators',
        guard: 'tag',
      },
    ]);
  });

  test('runs its self-test as an owner that is no tenant', async () => {
    const clock = new ManualClock();
    const engine = new EchoEngine({ clock });
    const result = embed(engine, clock).selfTest(AbortSignal.timeout(1000));
    clock.advance(1);
    assert.equal(await result, null);
    assert.equal(engine.runs[0]!.request.tenant, 9);
  });
});
