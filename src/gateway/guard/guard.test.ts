/**
 * Goal: twelve characters of another's marker never leave on any channel, and everything else arrives whole. Method: random texts with
 * and without a stretch of a marker, written plainly or with JSON's escapes, cut into random pieces over all channels at once; what
 * left is searched by a plain reading of every escape.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { makeMarker } from '../../markers/marker.js';
import { MarkerIndex } from '../../markers/marker-index.js';
import { MarkerSet } from '../../markers/marker-set.js';
import type { AnswerPiece, Prompt } from '../../upstream/upstream.js';
import { Outgoing } from '../outgoing.js';
import { AnswerGuard } from './answer-guard.js';
import type { HoldBack } from './channel.js';
import { EscapeView, withoutEscapes } from './escapes.js';

const SECRET = Buffer.from('a secret of these tests alone');
const THEIRS = makeMarker(SECRET, 'acme', 'test', 0).text;
const OWN = makeMarker(SECRET, 'globex', 'test', 0).text;
/** In two indexes, as those that operators gave and those of sentinels are. */
const LIVE = new MarkerSet(['acme', 'globex'].map((owner) => new MarkerIndex([makeMarker(SECRET, owner, 'test', 0)])));
const PROMPT: Prompt = { kind: 'text', text: 'say something' };

const outgoing = (guarded: boolean, holdBack: HoldBack = null, prompt: Prompt = PROMPT): Outgoing => {
  const out = new Outgoing({
    stop: [],
    chunks: null,
    logprobs: true,
    isChat: true,
    callId: (index) => `call_${index}`,
  });
  out.guardWith(guarded ? new AnswerGuard(LIVE, 'globex', prompt, holdBack) : null);
  return out;
};

/** A piece of text on one of the channels. */
const CHANNELS: Readonly<Record<string, (text: string) => AnswerPiece>> = {
  content: (text) => ({ kind: 'text', text, logprobs: [] }),
  reasoning: (text) => ({ kind: 'reasoning', text }),
  refusal: (text) => ({ kind: 'refusal', text }),
  'the arguments of a tool call': (text) => ({ kind: 'tool-call', index: 0, id: null, name: null, arguments: text }),
  'the name of a tool call': (text) => ({ kind: 'tool-call', index: 1, id: null, name: text, arguments: '' }),
  'the id of a tool call': (text) => ({ kind: 'tool-call', index: 2, id: text, name: null, arguments: '' }),
  'chosen tokens': (text) => ({ kind: 'text', text: '', logprobs: [{ token: text, logprob: -1, top: [] }] }),
  'likeliest tokens': (text) => ({
    kind: 'text',
    text: '',
    logprobs: [{ token: ' ', logprob: -1, top: [{ token: text, logprob: -0.5 }] }],
  }),
};
/** Words that come whole. */
const WORDS: ReadonlySet<string> = new Set(['the name of a tool call', 'the id of a tool call']);

/** What has left, by channel. */
function left(out: Outgoing): Record<string, string> {
  const { text, rest } = out.whole();
  const rows = rest.logprobs ?? [];
  return {
    content: text,
    reasoning: rest.reasoning,
    refusal: rest.refusal,
    'the arguments of a tool call': rest.toolCalls.map((call) => call.arguments).join(''),
    'the name of a tool call': rest.toolCalls.map((call) => call.name).join(' '),
    'the id of a tool call': rest.toolCalls.map((call) => call.id).join(' '),
    'chosen tokens': rows.map(({ token }) => token).join(''),
    'likeliest tokens': rows.map(({ top }) => top[0]?.token ?? '').join(''),
  };
}

/** Sends pieces until the guard stops them, as the relay does. */
function send(out: Outgoing, pieces: readonly AnswerPiece[]): void {
  for (const piece of pieces) {
    if (piece.kind === 'text' && piece.logprobs.length === 0) out.text(piece.text);
    else out.piece(piece);
    if (out.foreign !== null) return;
  }
  out.last();
}

/** The longest stretch of the marker in a text, escapes of any kind read. */
function longestStretch(text: string, marker: string): number {
  const plain = `${text}\n${text.replace(/\\+u([0-9a-fA-F]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))}`;
  let longest = 0;
  for (let from = 0; from < marker.length; from++) {
    while (from + longest < marker.length && plain.includes(marker.slice(from, from + longest + 1))) longest++;
  }
  return longest;
}

const cut = (text: string, sizes: readonly number[]): string[] => {
  const pieces: string[] = [];
  for (let at = 0, i = 0; at < text.length; i++) {
    const size = sizes[i % sizes.length]!;
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return pieces;
};

/** Writes the characters that `which` picks as escapes, behind so many backslashes. */
const escaped = (text: string, which: readonly boolean[], backslashes: number): string =>
  Array.from(text)
    .map((char, i) =>
      which[i % which.length]!
        ? `${'\\'.repeat(backslashes)}u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
        : char,
    )
    .join('');

const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });
const around = fc.string({ unit: fc.constantFrom(...Array.from('abKVC-27 "\\{}é😀\n')), maxLength: 30 });
const stretch = fc
  .tuple(fc.integer({ min: 0, max: 18 }), fc.integer({ min: 12, max: 30 }))
  .map(([from, length]) => THEIRS.slice(from, from + length))
  .filter((text) => text.length >= 12);
const writing = fc.record({
  which: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
  backslashes: fc.constantFrom(1, 1, 2, 4, 7),
});

describe('the guard of an answer', () => {
  for (const [channel, piece] of Object.entries(CHANNELS)) {
    test(`stops a marker in ${channel}, which leaves with the guard off`, () => {
      const texts = WORDS.has(channel) ? [`x${THEIRS}`] : cut(`so: ${THEIRS}.`, [3, 1, 5]);
      const pieces = texts.map(piece);
      const off = outgoing(false);
      send(off, pieces);
      assert.ok(left(off)[channel]!.includes(THEIRS), 'the control: without the guard it leaves');
      const on = outgoing(true);
      send(on, pieces);
      assert.equal(on.foreign?.hit.marker.owner, 'acme');
      assert.equal(on.foreign?.hit.markerOffset, 0);
      for (const text of Object.values(left(on))) assert.equal(longestStretch(text, 'KVC-') > 3, false, text);
      assert.deepEqual([on.last(), on.text('more')], ['', ''], 'nothing leaves from then on');
    });
  }

  const LEAK_SEED = 612_001;
  test(`never lets twelve characters of another's marker out, however cut and written (seed ${LEAK_SEED})`, () => {
    const channels = fc.constantFrom(...Object.keys(CHANNELS).filter((each) => !WORDS.has(each)));
    fc.assert(
      fc.property(channels, around, stretch, around, sizes, writing, around, sizes, (...given) => {
        const [channel, before, leak, after, leakSizes, { which, backslashes }, noise, noiseSizes] = given;
        const wrote = escaped(leak, which, backslashes);
        // Before it nothing that would swallow its first escape, or be one itself.
        const text = `${before.replaceAll('\\', '')} ${wrote}${after.replaceAll('\\', '')}`;
        const leaking = cut(text, leakSizes).map(CHANNELS[channel]!);
        const other = Object.keys(CHANNELS).filter((each) => each !== channel && !WORDS.has(each));
        const innocent = cut(noise, noiseSizes).map((each, i) => CHANNELS[other[i % other.length]!]!(each));
        const mixed = leaking.flatMap((each, i) => (innocent[i] === undefined ? [each] : [each, innocent[i]]));
        const out = outgoing(true);
        send(out, mixed);
        assert.ok(out.foreign !== null, 'it is recognised');
        for (const each of Object.values(left(out))) assert.ok(longestStretch(each, THEIRS) < 12, each);
      }),
      { seed: LEAK_SEED, numRuns: 1500 },
    );
  });

  const WHOLE_SEED = 612_002;
  test(`lets everything else arrive whole on every channel (seed ${WHOLE_SEED})`, () => {
    const part = fc.oneof(
      around,
      fc.constantFrom(
        OWN,
        escaped(OWN, [true, false], 1),
        THEIRS.slice(0, 11),
        THEIRS.slice(19),
        '\\u00',
        '\\\\u',
        'KVC-KVC-',
      ),
    );
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 8 }),
        sizes,
        fc.constantFrom<HoldBack>(null, 0, 5, 100),
        (parts, by, hold) => {
          // Parts of another's marker side by side could make a stretch of twelve.
          const text = parts.join(' | ');
          for (const [channel, piece] of Object.entries(CHANNELS)) {
            if (WORDS.has(channel)) continue;
            const out = outgoing(true, hold);
            send(out, cut(text, by).map(piece));
            assert.equal(out.foreign, null);
            assert.equal(left(out)[channel], text, channel);
          }
        },
      ),
      { seed: WHOLE_SEED, numRuns: 300 },
    );
  });

  test('lets go at once of whatever can not become part of a marker', () => {
    const out = outgoing(true);
    out.text('Hello. ');
    assert.equal(left(out).content, 'Hello. ');
    out.text('{"a":"\\"b\\""}.');
    assert.equal(left(out).content, 'Hello. {"a":"\\"b\\""}.');
    out.text('KV');
    assert.equal(left(out).content, 'Hello. {"a":"\\"b\\""}.');
  });

  test('holds at least as much as it is told, and never half a character alone', () => {
    const out = outgoing(true, 4);
    out.text('abc 😀!! ');
    assert.equal(left(out).content, 'abc ', 'four characters would cut the face in two');
    out.last();
    assert.equal(left(out).content, 'abc 😀!! ');
  });

  test('with nothing held back, stops at the twelfth character, and eleven have left', () => {
    const out = outgoing(true, 0);
    send(
      out,
      Array.from(THEIRS, (char) => CHANNELS.content!(char)),
    );
    assert.ok(out.foreign !== null);
    assert.equal(left(out).content, THEIRS.slice(0, 11));
  });

  test('lets what a channel held leave before another channel goes on, in the order of the engine', () => {
    const out = outgoing(true);
    send(out, [{ kind: 'reasoning', text: 'KVC' }]);
    assert.equal(left(out).reasoning, 'KVC');
    const turned = outgoing(true);
    turned.piece({ kind: 'reasoning', text: 'KVC' });
    assert.equal(left(turned).reasoning, '');
    turned.text('KVC');
    assert.deepEqual([left(turned).reasoning, left(turned).content], ['KVC', '']);
    turned.piece({ kind: 'tool-call', index: 0, id: 'a', name: 'f', arguments: '' });
    assert.equal(left(turned).content, 'KVC');
  });

  test('takes what stands in the request as no secret from it, in calls and tools too, with escapes or without', () => {
    const rich = (value: unknown): Prompt => ({
      kind: 'chat',
      messages: [{ role: 'user', content: 'x' }],
      rich: {
        messages: [{ role: 'assistant', content: '', tool_calls: [value] }],
        tools: [],
        fields: {},
        hasData: false,
      },
    });
    const written = escaped(THEIRS, [true], 1);
    for (const prompt of [rich({ a: THEIRS }), rich({ [THEIRS]: 1 }), rich(`{"a":"${written}"}`)]) {
      for (const text of [THEIRS, written]) {
        const out = outgoing(true, null, prompt);
        send(out, [CHANNELS.content!(text)]);
        assert.equal(out.foreign, null);
        assert.equal(left(out).content, text);
      }
    }
  });

  test('says where a stretch stood: its channel, its place there and in the marker', () => {
    const out = outgoing(true);
    send(out, [
      { kind: 'reasoning', text: 'so far so good' },
      { kind: 'reasoning', text: `, ${THEIRS.slice(5, 25)}!` },
    ]);
    const { channel, at, hit } = out.foreign!;
    assert.deepEqual([channel, at, hit.markerOffset, hit.length], ['reasoning', 16, 5, 20]);
  });
});

describe('a text without its escapes', () => {
  test('reads each escape of JSON, at any depth', () => {
    assert.equal(withoutEscapes('a\\u004bb\\\\u004b\\/\\"\\n\\\\\\\\q'), 'aKbK/"\nq');
    assert.equal(withoutEscapes('\\u00zz'), '\\zz');
    assert.equal(withoutEscapes('nothing'), 'nothing');
  });

  const SEED = 612_003;
  test(`is the same for any cut, and knows how long its end was (seed ${SEED})`, () => {
    const text = fc.string({ unit: fc.constantFrom(...Array.from('\\\\u004bKn"é')), maxLength: 60 });
    fc.assert(
      fc.property(text, sizes, fc.integer({ min: 0, max: 29 }), (raw, by, last) => {
        const whole = new EscapeView();
        const plain = whole.push(raw);
        const view = new EscapeView();
        assert.equal(
          cut(raw, by)
            .map((piece) => view.push(piece))
            .join(''),
          plain,
        );
        const length = view.rawLength(Math.min(last, plain.length));
        assert.equal(length, whole.rawLength(Math.min(last, plain.length)));
        const end = new EscapeView().push(raw.slice(raw.length - length));
        assert.equal(end, plain.slice(plain.length - Math.min(last, plain.length)));
      }),
      { seed: SEED, numRuns: 1000 },
    );
  });
});
