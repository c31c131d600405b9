/** What stops a fault, in the order in which a request meets them. One word each, the same in flags, docs, metrics and logs. */
export const GUARDS = [
  'policy',
  'admission',
  'salt',
  'rejection',
  'lease',
  'count',
  'checksum',
  'tag',
  'drain',
  'fence',
  'usage',
] as const;

export type GuardName = (typeof GUARDS)[number];

/** A set of guards as bits; bit i is `GUARDS[i]`. */
export type GuardBits = number;

export const ALL_GUARDS: GuardBits = (1 << GUARDS.length) - 1;

export function guardBit(name: GuardName): GuardBits {
  return 1 << GUARDS.indexOf(name);
}

export function isGuardName(name: string): name is GuardName {
  return (GUARDS as readonly string[]).includes(name);
}

export function guardsOf(bits: GuardBits): GuardName[] {
  return GUARDS.filter((_, index) => (bits >> index) & 1);
}

export function guardBits(names: Iterable<GuardName>): GuardBits {
  let bits = 0;
  for (const name of names) bits |= guardBit(name);
  return bits;
}

/** Names and values of the headers that say, in every answer, which guards are off and which faults are on; nothing when all is well. */
export function standingHeaders(guards: GuardBits, faults: readonly string[]): string[] {
  const headers: string[] = [];
  const off = guardsOf(ALL_GUARDS & ~guards);
  if (off.length > 0) headers.push('x-cofferdam-guards-off', off.join(','));
  if (faults.length > 0) headers.push('x-cofferdam-fault', faults.join(','));
  return headers;
}
