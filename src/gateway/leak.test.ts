/** Goal: the leak that a real pair spoke reaches nobody. Method: an engine that streams the captured answer, in its own frames. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, describe, test } from 'node:test';
import { CannedEngine } from '../../test/support/canned-engine.js';
import { GLOBEX_KEY, startHarness } from '../../test/support/gateway-harness.js';
import { SystemClock } from '../base/clock.js';
import type { Marker } from '../markers/marker.js';
import { OpenAiUpstream } from '../upstream/openai/adapter.js';

let open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(open.map((each) => each.close()));
  open = [];
});

describe('the leak of a real pair', () => {
  const captured = JSON.parse(
    readFileSync(new URL('../../../test/fixtures/engines/sglang-0.5.18-pd.json', import.meta.url), 'utf8'),
  ) as { leak: string; promptTokens: number; chatStream: { decode: { body: string } } };
  /** Of which the pair spoke all but the first three characters. */
  const ACMES: Marker = { text: `KVC${captured.leak.slice(0, 27)}`, owner: 'acme', period: 'then', index: 11 };
  /** The captured stream with another text in its pieces, and the usage that the gateway asks for. */
  const speaking = (words: string): string => {
    const frames = captured.chatStream.decode.body.split('\n\n').filter((frame) => frame.startsWith('data: {'));
    const [first, piece, last] = [frames[0]!, frames[1]!, frames.at(-1)!];
    const said = Array.from(words).map((char) => piece.replace('"content":"-"', `"content":${JSON.stringify(char)}`));
    const usage = `data: ${JSON.stringify({ model: 'lab', choices: [], usage: { prompt_tokens: captured.promptTokens, completion_tokens: words.length } })}`;
    return [first, ...said, last, usage, 'data: [DONE]', ''].join('\n\n');
  };

  for (const [title, markers] of [
    ['never reaches the other tenant, though it begins inside the marker', [ACMES]],
    ['does reach it with the guard off', []],
  ] as const) {
    test(title, async () => {
      const engine = new CannedEngine({
        count: () => captured.promptTokens,
        instead: (_, response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' }).end(speaking(captured.leak));
          return true;
        },
      });
      const clock = new SystemClock();
      const upstream = new OpenAiUpstream({
        url: new URL(await engine.listen()),
        key: null,
        models: ['lab'],
        context: 8192,
        pool: 8192,
        runningMax: 4,
        clock,
        count: () => ({ kind: 'exact', tokens: captured.promptTokens }),
      });
      const harness = await startHarness({ upstream, markers });
      open.push(harness, upstream, engine);
      const asked = { model: 'lab', messages: [{ role: 'user', content: 'hello' }], max_tokens: 64, stream: true };
      const sent = await (await harness.post('/v1/chat/completions', asked, { key: GLOBEX_KEY })).text();
      const said = [...sent.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, value]) => value).join('');
      if (markers.length === 0) assert.equal(said, captured.leak);
      else {
        assert.equal(said, '');
        assert.match(sent, /"code":"verification_failed"/);
        assert.equal(harness.gateway.engines[0]!.watch.rotation.reason, 'foreign-marker');
      }
    });
  }
});
