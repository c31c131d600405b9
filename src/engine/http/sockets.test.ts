/** Goal: a client that misbehaves on its socket costs nobody else anything. Method: raw sockets to a real engine. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { STREAM_AHEAD_MAX } from '../decode-node.js';
import { Served, until } from './harness.test.help.js';

const STALL_MS = 400;
const STREAM = {
  text: 'tell me a story',
  stream: true,
  sampling_params: { max_new_tokens: 3000, ignore_eos: true, temperature: 1, sampling_seed: 3 },
};

describe('sockets', () => {
  let served: Served;
  before(async () => {
    served = await Served.start(
      'single',
      { context: 4096, prefillPool: 4096, decodePool: 8192 },
      { stallMsMax: STALL_MS },
    );
  });
  after(async () => {
    await served.close();
  });

  const open = (): Socket => {
    const { port } = new URL(served.urls.single ?? '');
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    return socket;
  };
  const heard = (socket: Socket): Promise<string> =>
    new Promise((resolve) => {
      let text = '';
      socket.on('data', (piece) => {
        text += piece.toString('latin1');
      });
      socket.on('close', () => resolve(text));
    });

  test('a reader that takes nothing holds up nobody, stops the engine within a bound, and is given up in time', async () => {
    const socket = open();
    socket.pause();
    const body = JSON.stringify(STREAM);
    socket.write(`POST /generate HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await until(() => served.engine.stats().running === 1, 'the stream runs');
    const other = await served.postJson('/v1/completions', {
      prompt: 'hello hello hel',
      max_tokens: 600,
      ignore_eos: true,
    });
    assert.equal(other.usage.completion_tokens, 600);
    await served.idle();
    assert.ok(served.server.counters.generatedTokens < 3000 + 600, 'the engine stopped ahead of the reader');
    assert.ok(served.server.counters.generatedTokens > 600 + STREAM_AHEAD_MAX);
    socket.destroy();
  });

  test('a reader that is only slow gets all of its stream', async () => {
    const sent = served.send('single', 'POST', '/v1/completions', {
      prompt: 'x'.repeat(900),
      max_tokens: 3000,
      ignore_eos: true,
      stream: true,
      temperature: 0,
    });
    const { text } = await sent.answer;
    const all = text.split('\n\n').slice(0, -2);
    const came = all.map((frame) => JSON.parse(frame.slice('data: '.length)).choices[0].text).join('');
    assert.equal(came.length, 3000);
    await served.idle();
  });

  test('an HTTP/2 preface is answered and closed', async () => {
    const socket = open();
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    assert.match(await heard(socket), /^HTTP\/1\.1 400 /);
  });

  test('a body that is too large is refused by its head', async () => {
    const socket = open();
    socket.write(`POST /generate HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${100 * 1024 * 1024}\r\n\r\n{"text":"`);
    const answer = heard(socket);
    await until(() => socket.bytesRead > 0, 'the refusal comes before the body');
    socket.destroy();
    assert.match(await answer, /^HTTP\/1\.1 413 /);
  });

  test('a client that leaves in the middle of its body leaves nothing behind', async () => {
    const socket = open();
    socket.write('POST /generate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"text":"');
    await until(() => served.server.open === 1, 'the request is open');
    socket.destroy();
    await until(() => served.server.open === 0, 'the request is gone');
    await served.idle();
  });
});
