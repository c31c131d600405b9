/** Arrays over memory that threads share: a worker gets a vocabulary without copying it. */

export function newSharedInts(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(length * 4));
}

export function sharedInts(values: ArrayLike<number>): Int32Array {
  const ints = newSharedInts(values.length);
  ints.set(values);
  return ints;
}
