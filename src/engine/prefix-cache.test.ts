/**
 * Goal: sealed pages make a tenant's prompts faster and change nothing else: not an answer, not another tenant's, not a page that is
 * lost. Method: the whole engine in one thread, so that an order of events can be told; its ledgers and pages are looked at directly.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ManualClock } from '../base/clock.js';
import { Prng } from '../base/prng.js';
import type { EngineEnd } from '../handoff/engine-port.js';
import { countPages } from '../handoff/ledger.js';
import { PageState, PG, pageAt } from '../handoff/layout.js';
import type { PagePool } from '../kv/pool.js';
import { beginWrite, readTag, writeTag } from '../kv/tag.js';
import { decode, encode } from '../tokenizer/bytes.js';
import { engineConfig, type EngineOptions } from './config.js';
import { recall } from './harness.test.help.js';
import { InlineEngine } from './inline-engine.js';

const SEED = Number(process.env.SEED ?? 41);
const SIZES = { context: 512, prefillPool: 1024, decodePool: 1024, runningMax: 4 } as const;

const time = new ManualClock();

interface Told {
  readonly tokens: number[];
  end: EngineEnd | null;
  isReleased: boolean;
  abort(): void;
}

const newEngine = (options: EngineOptions = {}): InlineEngine =>
  new InlineEngine(engineConfig({ ...SIZES, ...options }), time);

function submit(engine: InlineEngine, prompt: string, tenant = 1, maxTokens = 20): Told {
  const told: Told = { tokens: [], end: null, isReleased: false, abort: () => {} };
  // Salts are HMACs: what matters here is that each tenant has its own.
  const salt = String(tenant).repeat(64);
  const run = engine.coordinator.submit(
    { tenant, salt, prompt: encode(prompt), maxTokens, temperature: 0, seed: 1, room: null, handle: null },
    {
      started: () => {},
      token: (id) => told.tokens.push(id),
      end: (end) => {
        told.end = end;
      },
      released: () => {
        told.isReleased = true;
      },
    },
  );
  told.abort = () => run.abort();
  return told;
}

function serve(engine: InlineEngine, prompt: string, tenant = 1, maxTokens = 20): Told & { end: EngineEnd } {
  const told = submit(engine, prompt, tenant, maxTokens);
  assert.ok(engine.runUntil(() => told.isReleased));
  return told as Told & { end: EngineEnd };
}

/** The pages of a node that are sealed, and whose. */
function sealedPages(engine: InlineEngine, node: 'prefill' | 'decode', tenant?: number): number[] {
  const { view } = engine[node].machine;
  return Array.from({ length: view.shape.pages }, (_, page) => page).filter((page) => {
    const cell = pageAt(view, page);
    if (view.cells[cell + PG.state] !== PageState.sealed) return false;
    return tenant === undefined || view.cells[cell + PG.tenant] === tenant;
  });
}

const readers = (engine: InlineEngine, node: 'prefill' | 'decode'): number =>
  sealedPages(engine, node).reduce((sum, page) => {
    const { view } = engine[node].machine;
    return sum + view.cells[pageAt(view, page) + PG.refs]!;
  }, 0);

function assertAtRest(engine: InlineEngine): void {
  for (const node of ['prefill', 'decode'] as const) {
    const { leased, draining, free, sealed } = countPages(engine[node].machine.view);
    assert.deepEqual([leased, draining], [0, 0], node);
    assert.equal(free + sealed, engine[node].machine.view.shape.pages);
    assert.equal(readers(engine, node), 0, node);
    engine[node].machine.assertHolds();
    assert.equal(engine[node].sweep.findings, 0);
  }
}

const prompt = (seed: number, length = 400): string =>
  recall(new Prng(seed), Math.max(length, 120)).prompt.slice(-length);

test('an answer is the same, token by token, over kept pages and without them', () => {
  const cold = newEngine({ prefixCache: false });
  const warm = newEngine();
  for (const length of [17, 32, 33, 400]) {
    const asked = prompt(SEED + length, length);
    const first = serve(warm, asked);
    const second = serve(warm, asked);
    const without = serve(cold, asked);
    assert.equal(first.end.cachedTokens, 0);
    // The last token is always computed, so a prompt of whole pages leaves its last page aside.
    assert.equal(second.end.cachedTokens, Math.floor((length - 1) / 16) * 16);
    assert.equal(without.end.cachedTokens, 0);
    assert.deepEqual(second.tokens, first.tokens);
    assert.deepEqual(without.tokens, first.tokens);
    assert.equal(second.end.promptTokens, length);
  }
  assert.deepEqual(sealedPages(cold, 'decode'), []);
  assertAtRest(warm);
});

test('a prompt that goes on behind a kept beginning is answered as by an engine that kept nothing', () => {
  const engine = newEngine();
  const beginning = prompt(SEED, 300);
  serve(engine, beginning);
  for (const rest of ['', ' and more', prompt(SEED + 1, 150)]) {
    const told = serve(engine, beginning.slice(0, 200) + rest);
    const alone = serve(newEngine({ prefixCache: false }), beginning.slice(0, 200) + rest);
    assert.deepEqual(told.tokens, alone.tokens);
    assert.ok(told.end.cachedTokens >= 192 - 16);
  }
});

test("the same prompt of another tenant finds nothing, and gets pages of its own; each tenant's second finds its own", () => {
  const engine = newEngine();
  const asked = prompt(SEED);
  serve(engine, asked, 1);
  const acmes = sealedPages(engine, 'decode');
  const globex = serve(engine, asked, 2);
  assert.equal(globex.end.cachedTokens, 0);
  assert.deepEqual(sealedPages(engine, 'decode', 1), acmes);
  assert.equal(sealedPages(engine, 'decode', 2).length, acmes.length);
  for (const tenant of [1, 2]) assert.equal(serve(engine, asked, tenant).end.cachedTokens, 384);
  assert.equal(engine.stats.guardHits().salt, 0, 'nothing of another tenant is even proposed');
  assertAtRest(engine);
});

test('kept pages make way for requests that need them, longest unused first, and never while they are read', () => {
  const engine = newEngine({ decodePool: 512, prefillPool: 512 });
  const [old, recent] = [prompt(SEED, 200), prompt(SEED + 1, 200)];
  serve(engine, old);
  serve(engine, recent);
  serve(engine, recent);
  // Too large for what is left beside both.
  serve(engine, prompt(SEED + 2, 160), 2);
  assert.equal(serve(engine, recent).end.cachedTokens, 192);
  assert.ok(serve(engine, old).end.cachedTokens < 192);
  assertAtRest(engine);
});

const IS_LONG = process.env.COFFERDAM_LONG === '1';

test(`under pressure no page and no answer is lost, whoever asks for what (seed ${SEED})`, () => {
  const beginnings = Array.from({ length: 4 }, (_, i) => prompt(SEED + 10 + i, 160));
  const ask = fc.record({
    tenant: fc.integer({ min: 1, max: 3 }),
    beginning: fc.nat(beginnings.length - 1),
    keeps: fc.integer({ min: 1, max: 160 }),
    turns: fc.nat(6),
    aborts: fc.constantFrom(false, false, false, true),
  });
  let hits = 0;
  fc.assert(
    fc.property(fc.array(ask, { minLength: 8, maxLength: 16 }), (asks) => {
      const engine = newEngine({ context: 256, decodePool: 512, prefillPool: 256 });
      const all: Told[] = [];
      const check = (): void => {
        for (const node of ['prefill', 'decode'] as const) {
          const { free, leased, draining, sealed } = countPages(engine[node].machine.view);
          assert.equal(free + leased + draining + sealed, engine[node].machine.view.shape.pages);
        }
      };
      for (const { tenant, beginning, keeps, turns, aborts } of asks) {
        const told = submit(engine, beginnings[beginning]!.slice(0, keeps), tenant, 4);
        all.push(told);
        for (let i = 0; i < turns; i++, check()) engine.turn();
        if (aborts) told.abort();
      }
      // Whoever left before it had a slot is told on the loop's next turn.
      const isOver = (): boolean => all.every(({ isReleased }) => isReleased);
      for (let i = 0; i < 10 && !engine.runUntil(isOver); i++) time.advance(1);
      assert.ok(isOver());
      assertAtRest(engine);
      for (const { end } of all)
        assert.ok(end?.outcome === 'finished' || end?.outcome === 'aborted', end?.error?.detail);
      hits += all.filter(({ end }) => (end?.cachedTokens ?? 0) > 0).length;
    }),
    { seed: SEED, numRuns: IS_LONG ? 100 : 6, endOnFailure: true, includeErrorInReport: true },
  );
  assert.ok(hits > 0, 'the property met no hit');
});

test('a storm of aborts over one kept beginning leaves nobody reading it, and it still serves', () => {
  const engine = newEngine();
  const asked = prompt(SEED);
  const { tokens } = serve(engine, asked);
  const chance = new Prng(SEED);
  for (let round = 0; round < 25; round++) {
    const storm = [1, 2, 3, 4].map(() => submit(engine, asked));
    for (let turns = chance.below(8); turns > 0; turns--) engine.turn();
    for (const one of storm) one.abort();
    assert.ok(engine.runUntil(() => storm.every(({ isReleased }) => isReleased)));
    assertAtRest(engine);
  }
  const after = serve(engine, asked);
  assert.equal(after.end.cachedTokens, 384);
  assert.deepEqual(after.tokens, tokens);
});

const poolOf = (engine: InlineEngine, node: 'prefill' | 'decode'): PagePool =>
  node === 'decode' ? engine.decodePool : engine.prefill.pool;

/** What somebody who writes where he must not does to a sealed page, and the guard that sees it. */
const OVERWRITES = [
  [
    'a tag of another tenant',
    'tag',
    (pool: PagePool, page: number) => writeTag(pool, page, { ...readTag(pool, page), owner: 9 }),
  ],
  [
    'a tag of another place',
    'tag',
    (pool: PagePool, page: number) => writeTag(pool, page, { ...readTag(pool, page), place: 7 }),
  ],
  ['a write that has begun', 'tag', beginWrite],
  ['a payload', 'checksum', (pool: PagePool, page: number) => pool.payload(page).fill(1, 100, 104)],
] as const;

for (const node of ['prefill', 'decode'] as const) {
  for (const [what, guard, overwrite] of OVERWRITES) {
    test(`a sealed page of ${node} over which ${what} was written fails closed, once`, () => {
      const engine = newEngine();
      const asked = prompt(SEED);
      const { tokens } = serve(engine, asked);
      const [page] = sealedPages(engine, node);
      overwrite(poolOf(engine, node), page!);
      const failed = serve(engine, asked);
      assert.equal(failed.end.outcome, 'failed');
      assert.equal(failed.end.guard, guard);
      assert.deepEqual(failed.tokens, []);
      assert.equal(readers(engine, node), 0);
      // Whoever comes next is not given the page again.
      const next = serve(engine, asked);
      assert.deepEqual(next.tokens, tokens);
      assert.ok(next.end.cachedTokens <= 384);
    });
  }
}

test('a sealed page that is overwritten while it is read ends the request before its next token', () => {
  const engine = newEngine();
  const asked = prompt(SEED);
  serve(engine, asked);
  const told = submit(engine, asked, 1, 200);
  engine.runUntil(() => told.tokens.length === 5);
  const [page] = sealedPages(engine, 'decode');
  beginWrite(engine.decodePool, page!);
  engine.runUntil(() => told.isReleased);
  assert.deepEqual([told.end?.outcome, told.end?.guard], ['failed', 'tag']);
  assert.ok(told.tokens.length <= 6, 'the sixth was computed before the write');
});

test('what is decoded are the tokens of the prompt, not of whoever filled the pages before', () => {
  const { prompt: asked, marker } = recall(new Prng(SEED), 400);
  const engine = newEngine({ decodePool: 512, prefillPool: 512 });
  for (let tenant = 1; tenant <= 6; tenant++) {
    serve(engine, prompt(SEED + tenant, 300), tenant);
    assert.equal(decode(serve(engine, asked, tenant, marker.length).tokens), marker);
  }
  assertAtRest(engine);
});

test('sealed pages are counted for the tenant that sealed them, and no more once they are evicted', () => {
  const engine = newEngine();
  const words = (letter: string, pages: number): string => letter.repeat(pages * 16 + 1);
  serve(engine, words('a', 3), 1, 1);
  serve(engine, words('b', 5), 2, 1);
  const sealed = (): [number, number][] => [...(engine.coordinator.stats().sealedByTenant ?? [])];
  engine.runUntil(() => false);
  assert.deepEqual(sealed(), [
    [1, 3],
    [2, 5],
  ]);
  for (let i = 0; i < 8; i++) serve(engine, String.fromCharCode(99 + i).repeat(400), 3, 1);
  engine.runUntil(() => false);
  const counts = new Map(sealed());
  const total = [...counts.values()].reduce((sum, each) => sum + each, 0);
  assert.equal(total, engine.coordinator.stats().decodePages.sealed);
  assert.ok((counts.get(1) ?? 0) < 3, 'the oldest are evicted first');
});
