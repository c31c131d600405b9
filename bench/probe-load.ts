/**
 * What does the probe itself cost? CPU of this process per request with 5,000 requests open at once against an engine that answers from
 * a can, in a process of its own: if the probe were slow, its load would not be the load that it says.
 *
 *   npm run build && node dist/bench/probe-load.js
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { SystemClock } from '../src/base/clock.js';
import { ProbeClient } from '../src/probe/client.js';

const TOGETHER = 5000;
const ROUNDS = 5;
const ANSWER_TOKENS = 16;
const PROMPT = 'the quick brown fox jumps over the lazy dog '.repeat(8);
const clock = new SystemClock();

function startEngine(): Promise<[ChildProcess, string]> {
  const child = fork(fileURLToPath(new URL('gateway-side.js', import.meta.url)), ['engine']);
  return new Promise((resolve) => {
    child.once('message', (message: { url: string }) => resolve([child, message.url]));
  });
}

const [engine, url] = await startEngine();
const tenant = { name: 'a', key: null };
const client = new ProbeClient(
  { origin: new URL(url), tenants: [tenant], model: 'canned', route: 'chat' },
  clock,
  '0',
  'bench',
);
const costs: number[] = [];
for (let round = 0; round <= ROUNDS; round++) {
  const before = process.cpuUsage();
  const answers = await Promise.all(
    Array.from({ length: TOGETHER }, () =>
      client.ask({ tenant, prompt: PROMPT, maxTokens: ANSWER_TOKENS, stream: false, deadlineMs: 60_000 }),
    ),
  );
  const { user, system } = process.cpuUsage(before);
  const wrong = answers.filter(({ outcome }) => outcome !== 'answered').length;
  if (wrong > 0) throw new Error(`Expected every request to be answered, got ${wrong} others.`);
  // The first opens the connections and warms up.
  if (round > 0) costs.push((user + system) / TOGETHER);
}
client.close();
engine.disconnect();
const median = costs.toSorted((a, b) => a - b)[ROUNDS >> 1]!;
process.stdout.write(
  `${TOGETHER} requests at once, ${median.toFixed(0)} us of CPU each (200 wanted); rounds: ${costs.map((us) => us.toFixed(0)).join(', ')}\n`,
);
