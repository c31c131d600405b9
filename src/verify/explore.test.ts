/** Goal: the explorer finds what is there, by the shortest way, and never says more than it saw. Method: tiny worlds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeCount, freePage, takePage } from '../handoff/ledger.js';
import { everyPageIsAccountedFor } from '../handoff/invariants.js';
import { newView, shapeOf, type View } from '../handoff/layout.js';
import { explore } from './explore.js';
import { ACTION_INDEX_MAX, type Broken, type Model } from './model.js';

interface TinyWorld {
  readonly steps: Readonly<Record<string, (value: number) => number>>;
  readonly broken?: (value: number) => boolean;
  readonly settled?: (value: number) => boolean;
  readonly sometimes?: (value: number) => boolean;
}

/** One number that named steps change. */
class NumberModel implements Model {
  readonly width = 4;
  readonly cells = new Uint8Array(4);
  readonly kinds: Model['kinds'];
  readonly properties: Model['properties'];
  readonly #words = new Int32Array(this.cells.buffer);
  readonly #steps: readonly (readonly [string, (value: number) => number])[];

  constructor(world: TinyWorld) {
    this.#steps = Object.entries(world.steps);
    this.kinds = this.#steps.map(([name]) => ({ name, isProgress: true, isExpected: true }));
    const value = (): number => this.#words[0];
    this.properties = {
      always: (): Broken | null => (world.broken?.(value()) ? { invariant: 'small', words: `${value()}` } : null),
      sometimes:
        world.sometimes === undefined ? [] : [{ name: 'seen', holds: () => world.sometimes?.(value()) === true }],
      settled: () => world.settled?.(value()) ?? true,
    };
  }

  init(): void {
    this.#words[0] = 0;
  }

  wordsUsed(): number {
    return 1;
  }

  actions(into: Int32Array): number {
    for (let kind = 0; kind < this.#steps.length; kind++) into[kind] = kind * ACTION_INDEX_MAX;
    return this.#steps.length;
  }

  next(action: number): void {
    const [, step] = this.#steps[action / ACTION_INDEX_MAX];
    this.#words[0] = step(this.#words[0]);
  }

  boundary(): boolean {
    return true;
  }

  inWords(action: number): string {
    return this.#steps[action / ACTION_INDEX_MAX][0];
  }
}

const both = { one: (value: number) => Math.min(value + 1, 20), double: (value: number) => Math.min(value * 2, 20) };

test('a planted violation is found by the shortest way', () => {
  const model = new NumberModel({ steps: both, broken: (value) => value === 12 });
  const found = explore(model);
  assert.equal(found.verdict, 'violated');
  assert.equal(found.violation?.invariant, 'small');
  assert.deepEqual(
    found.violation?.path.map((action) => model.inWords(action)),
    ['one', 'one', 'one', 'double', 'double'],
  );
});

test('a whole world holds, with every state once', () => {
  const found = explore(new NumberModel({ steps: both, sometimes: (value) => value === 7 }));
  assert.equal(found.verdict, 'holds');
  assert.deepEqual([found.distinct, found.generated, found.stuck], [21, 42, 0]);
  assert.deepEqual(found.witnesses, { seen: 5 });
});

test('states that can never settle are found, also where they go round in a circle', () => {
  const circle = {
    in: (value: number) => (value === 0 ? 1 : value),
    round: (value: number) => (value === 1 ? 2 : value === 2 ? 1 : value),
  };
  const found = explore(new NumberModel({ steps: circle, settled: (value) => value === 0 }));
  assert.equal(found.verdict, 'violated');
  assert.equal(found.violation?.kind, 'liveness');
  assert.equal(found.stuck, 2);
});

test('an action that never fires, and a thing that is never seen, are no proof', () => {
  const never = explore(new NumberModel({ steps: both, sometimes: (value) => value === 99 }));
  assert.equal(never.verdict, 'incomplete');
  assert.match(never.reasons.join(), /"seen" was never seen/);
});

test('a run that meets its bound says incomplete', () => {
  const found = explore(new NumberModel({ steps: { one: (value) => value + 1 } }), { statesMax: 1000 });
  assert.equal(found.verdict, 'incomplete');
  assert.match(found.reasons.join(), /the bound of 1000 states was reached/);
});

/** A pool alone, as the ledger runs it: a page is taken for one of two slots, or any taken page is freed. */
class PoolModel implements Model {
  readonly cells: Uint8Array;
  readonly width: number;
  readonly kinds = ['take', 'free'].map((name) => ({ name, isProgress: true, isExpected: true }));
  readonly view: View;
  readonly properties: Model['properties'];

  constructor(readonly pages: number) {
    const shape = shapeOf('prefill', { slots: 1, pages, pagesPerSlot: 1 });
    this.width = Math.ceil(shape.width / 4) * 4;
    this.cells = new Uint8Array(this.width);
    this.view = newView(shape, { faults: 0, guards: 0 }, this.cells);
    this.properties = {
      always: (): Broken | null => {
        const words = everyPageIsAccountedFor(this.view);
        return words === null ? null : { invariant: 'everyPageIsAccountedFor', words };
      },
      sometimes: [{ name: 'the pool is empty', holds: () => freeCount(this.view) === 0 }],
      settled: () => freeCount(this.view) === pages,
    };
  }

  init(): void {
    newView(this.view.shape, this.view.rules, this.cells);
  }

  wordsUsed(): number {
    return this.width / 4;
  }

  /** Epochs are only compared, so the model lets them wrap: it sets them back. */
  next(action: number): void {
    if (action < ACTION_INDEX_MAX) takePage(this.view, 0);
    else freePage(this.view, action % ACTION_INDEX_MAX);
    for (let page = 0; page < this.pages; page++) this.cells[this.#at(page) + 3] = 0;
  }

  actions(into: Int32Array): number {
    let count = 0;
    if (freeCount(this.view) > 0) into[count++] = 0;
    for (let page = 0; page < this.pages; page++) {
      if (this.cells[this.#at(page)] !== 0) into[count++] = ACTION_INDEX_MAX + page;
    }
    return count;
  }

  #at(page: number): number {
    return this.view.shape.pageBase + page * this.view.shape.pageWidth;
  }

  boundary(): boolean {
    return true;
  }

  inWords(action: number): string {
    return action < ACTION_INDEX_MAX ? 'take' : `free ${action % ACTION_INDEX_MAX}`;
  }
}

test('a pool alone is a model as well: every order of taking and freeing four pages keeps them all', () => {
  const found = explore(new PoolModel(4));
  assert.equal(found.verdict, 'holds');
  // Ordered lists of free pages: the sum over k of 4! / (4 - k)!.
  assert.equal(found.distinct, 65);
});
