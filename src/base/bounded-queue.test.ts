/** Goal: first in, first out, and a bound that holds. Method: random commands against a plain array. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import fc from 'fast-check';
import { BoundedQueue } from './bounded-queue.js';
import { SystemClock } from './clock.js';

test('a full queue says so, and keeps what it has', () => {
  const queue = new BoundedQueue<string>(2);
  assert.deepEqual([queue.push('a'), queue.push('b'), queue.push('c')], [true, true, false]);
  assert.deepEqual([...queue], ['a', 'b']);
  assert.equal(queue.shift(), 'a');
  assert.equal(queue.push('c'), true);
  assert.equal(queue.peek(), 'b');
});

test('a queue without room is refused at birth', () => {
  assert.throws(() => new BoundedQueue(0), /at least one item/);
});

test('it does what an array does, whatever the order of calls (seed 21)', () => {
  const command = fc.oneof(
    fc.record({ kind: fc.constant('push' as const), item: fc.nat(8) }),
    fc.record({ kind: fc.constant('shift' as const), item: fc.constant(0) }),
    fc.record({ kind: fc.constant('remove' as const), item: fc.nat(8) }),
  );
  fc.assert(
    fc.property(fc.array(command, { maxLength: 400, size: 'max' }), (commands) => {
      const queue = new BoundedQueue<number>(100);
      let plain: number[] = [];
      for (const { kind, item } of commands) {
        if (kind === 'push') {
          assert.equal(queue.push(item), plain.length < 100);
          if (plain.length < 100) plain.push(item);
        } else if (kind === 'shift') assert.equal(queue.shift(), plain.shift());
        else {
          const at = plain.indexOf(item);
          assert.equal(queue.remove(item), at >= 0);
          if (at >= 0) plain = plain.toSpliced(at, 1);
        }
        assert.equal(queue.size, plain.length);
        assert.equal(queue.peek(), plain[0]);
      }
      assert.deepEqual([...queue], plain);
    }),
    { seed: 21, numRuns: 60 },
  );
});

test('what has left the queue is not kept alive by it', () => {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc') as () => void;
  const queue = new BoundedQueue<object>(8);
  queue.push({ stays: true });
  queue.push({ stays: true });
  const left = new WeakRef(queue.shift()!);
  // A WeakRef holds on until the job that made it is over.
  return new Promise<void>((resolve) => new SystemClock().soon(resolve)).then(() => {
    collect();
    assert.equal(left.deref(), undefined);
    assert.equal(queue.size, 1);
  });
});

test('a long-lived queue does not keep what has left it', () => {
  const queue = new BoundedQueue<number>(4);
  for (let i = 0; i < 10_000; i++) {
    queue.push(i);
    assert.equal(queue.shift(), i);
  }
  assert.equal(queue.size, 0);
  assert.equal(queue.shift(), undefined);
});
