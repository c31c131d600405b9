/** Goal: the explorer finds what is there, by the shortest way, and never says more than it saw. Method: tiny worlds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeCount, freePage, takePage } from '../handoff/ledger.js';
import { everyPageIsAccountedFor } from '../handoff/invariants.js';
import { newView, shapeOf, type View } from '../handoff/layout.js';
import { explore } from './explore.js';
import { Fingerprint } from './table.js';
import { components } from './traps.js';
import { ACTION_INDEX_MAX, ALL_PARTS, type Broken, type Model } from './model.js';

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
  readonly parts = [0];
  readonly kinds: Model['kinds'];
  readonly properties: Model['properties'];
  readonly #words = new Int32Array(this.cells.buffer);
  readonly #steps: readonly (readonly [string, (value: number) => number])[];

  /** Actions named in `worldly` are the world's doing. */
  constructor(world: TinyWorld, worldly: readonly string[] = []) {
    this.#steps = Object.entries(world.steps);
    this.kinds = this.#steps.map(([name]) => ({ name, isProgress: !worldly.includes(name), isExpected: true }));
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

  value(): number {
    return this.#words[0];
  }

  wordsUsed(): number {
    return 1;
  }

  actions(into: Int32Array): number {
    for (let kind = 0; kind < this.#steps.length; kind++) into[kind] = kind * ACTION_INDEX_MAX;
    return this.#steps.length;
  }

  next(action: number): number {
    const [, step] = this.#steps[action / ACTION_INDEX_MAX];
    this.#words[0] = step(this.#words[0]);
    return ALL_PARTS;
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

test('what is told of a livelock is the trap itself, not the first state that is doomed', () => {
  // 0 can still settle at 9; from 1 on all roads lead to the circle of 3 and 4.
  const doomed = {
    wrong: (value: number) => (value === 0 ? 1 : value),
    on: (value: number) => (value === 1 ? 2 : value === 2 ? 3 : value === 3 ? 4 : value === 4 ? 3 : value),
    right: (value: number) => (value === 0 ? 9 : value),
  };
  const model = new NumberModel({ steps: doomed, settled: (value) => value === 9 });
  const found = explore(model);
  assert.equal(found.stuck, 4);
  assert.deepEqual(
    found.violation?.path.map((action) => model.inWords(action)),
    ['wrong', 'on', 'on'],
  );
});

test('a way to settle that only the world can open is none', () => {
  const model = new NumberModel({ steps: { in: () => 1, out: () => 0 }, settled: (value) => value === 0 });
  assert.equal(explore(model).verdict, 'holds');
  const worldly = new NumberModel({ steps: { in: () => 1, out: () => 0 }, settled: (value) => value === 0 }, ['out']);
  assert.equal(explore(worldly).violation?.kind, 'liveness');
});

test('states are met breadth first, in the order of their actions', () => {
  const met: number[] = [];
  explore(new NumberModel({ steps: both, broken: (value) => met.push(value) < 0 }));
  assert.deepEqual(met.slice(0, 8), [0, 1, 2, 3, 4, 6, 5, 8]);
});

test('states outside of the boundary are counted, not explored, and make the verdict incomplete', () => {
  const model = new NumberModel({ steps: both });
  model.boundary = () => model.value() < 10;
  const found = explore(model);
  assert.equal(found.verdict, 'incomplete');
  assert.match(found.reasons.join(), /boundary/);
});

test('components: a circle is one, what leads into it is its own', () => {
  // 0 -> 1 -> 2 -> 1, 3 alone
  const component = components(Int32Array.from([0, 1, 2, 3, 3]), [1, 2, 1]);
  assert.equal(component[1], component[2]);
  assert.equal(new Set(component).size, 3);
});

test('fingerprints that are carried on are those of the whole state', () => {
  const states: Int32Array[] = [
    Int32Array.of(1, 2, 3),
    Int32Array.of(1, 7, 3),
    Int32Array.of(1, 7),
    Int32Array.of(1, 7, -1, 5),
  ];
  const carried = new Fingerprint();
  carried.of(states[0], 3);
  carried.change(1, 2, 7);
  carried.remove(2, 3);
  carried.add(2, -1);
  carried.add(3, 5);
  const whole = new Fingerprint();
  whole.of(states[3], 4);
  assert.deepEqual([carried.low, carried.high], [whole.low, whole.high]);
  const printOf = (state: Int32Array): string => {
    whole.of(state, state.length);
    return `${whole.low} ${whole.high}`;
  };
  assert.equal(new Set(states.map((state) => printOf(state))).size, 4);
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
  readonly parts = [0];
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
  next(action: number): number {
    if (action < ACTION_INDEX_MAX) takePage(this.view, 0);
    else freePage(this.view, action % ACTION_INDEX_MAX);
    for (let page = 0; page < this.pages; page++) this.cells[this.#at(page) + 3] = 0;
    return ALL_PARTS;
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
