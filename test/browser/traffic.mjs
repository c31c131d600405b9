/** Two tenants who really use the gateway: short and long answers, readers that leave, and requests that are refused. */

/** Requests that each tenant keeps open at once. */
const OPEN_EACH = 3;

/**
 * Keeps asking until `stop()`, which resolves when all have ended.
 * @param {string} url the tenants' port
 * @param {Readonly<Record<string, string>>} keys by tenant
 */
export function startTraffic(url, keys) {
  let stopped = false;
  const leaving = new AbortController();
  const loops = Object.values(keys).flatMap((key, tenant) =>
    Array.from({ length: OPEN_EACH }, (_, lane) => loop(key, tenant * OPEN_EACH + lane)),
  );

  async function loop(key, seed) {
    for (let turn = seed; !stopped; turn++) {
      try {
        await one(key, turn);
      } catch {
        // Left at the end, as readers do.
      }
    }
  }

  async function one(key, turn) {
    if (turn % 9 === 4) await post(key, { prompt: 'word '.repeat(20_000), max_tokens: 1 });
    if (turn % 13 === 6) await post(key, { prompt: 'short', rid: 'mine' });
    if (turn % 29 === 8) await post('no such key', { prompt: 'short' });
    const words = Array.from({ length: 20 + ((turn * 37) % 160) }, (_, i) => `item${(turn * 7 + i) % 50}`).join(' ');
    await post(key, {
      prompt: `${words}. Again: ${words.slice(0, 40)}`,
      max_tokens: 40 + ((turn * 53) % 400),
      stream: true,
    });
  }

  async function post(key, body) {
    const answer = await fetch(`${url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'lab', ...body }),
      signal: leaving.signal,
    });
    await answer.text();
  }

  return {
    async stop() {
      stopped = true;
      leaving.abort();
      await Promise.allSettled(loops);
    },
  };
}
