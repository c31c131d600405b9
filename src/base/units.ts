/** Sizes as people write them: `128k` is 131072, `1M` is 1048576. */
const COUNT = /^(\d{1,15})([kKmMgG]?)$/;

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

/** A whole number from zero up, with an optional suffix k, M or G (powers of 1024); null for anything else. */
export function parseCount(text: string): number | null {
  const match = COUNT.exec(text);
  if (match === null) return null;
  const value = Number(match[1]) * FACTORS[match[2]!.toLowerCase()]!;
  return Number.isSafeInteger(value) ? value : null;
}

export function isPowerOfTwo(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0 && Number.isInteger(Math.log2(value));
}
