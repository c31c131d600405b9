/** Programmer errors: on in production, in words. Untrusted input never reaches an assert. */
export class AssertionFailure extends Error {
  override readonly name = 'AssertionFailure';
}

export function assert(condition: boolean, words: string): asserts condition {
  if (!condition) throw new AssertionFailure(words);
}

/** For the default branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new AssertionFailure(`a case that cannot happen was reached: ${String(value)}`);
}
