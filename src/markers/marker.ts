import { createHmac } from 'node:crypto';
import { assert } from '../base/assert.js';

/**
 * A marker is a word that only one tenant ever sees: `KVC-` and 128 bits in base32. Where it turns up in another tenant's
 * answer, KV has leaked, and the marker says whose and when. All markers follow from a secret, so that every one of them can be
 * written down again by whoever holds it, and by nobody else.
 */
export interface Marker {
  /** 30 characters. */
  readonly text: string;
  readonly owner: string;
  /** The stretch of time it stands for, as the caller names it: `2026-11`. */
  readonly period: string;
  /** Which of its owner's markers of that period: 0 and up. */
  readonly index: number;
}

export const MARKER_PREFIX = 'KVC-';
/** RFC 4648, section 6, in lower case. */
export const MARKER_ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
/** 128 bits in fives: 25 characters and 3 bits, padded with two zero bits. */
const CODE_CHARACTERS = 26;
const CODE_BYTES = 16;
export const MARKER_CHARACTERS: number = MARKER_PREFIX.length + CODE_CHARACTERS;
/** A shorter secret could be found by trying. */
export const MARKER_SECRET_BYTES_MIN = 16;

/** RFC 4648 base32 without its `=` padding, in lower case. */
export function base32(bytes: Uint8Array): string {
  let out = '';
  let held = 0;
  let bits = 0;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      out += MARKER_ALPHABET[(held >> bits) & 31];
    }
  }
  return bits === 0 ? out : out + MARKER_ALPHABET[(held << (5 - bits)) & 31];
}

/** The marker `index` of `owner` in `period`: the first 128 bits of HMAC-SHA-256 over the three, which JSON keeps apart. */
export function makeMarker(secret: Uint8Array, owner: string, period: string, index: number): Marker {
  assert(secret.length >= MARKER_SECRET_BYTES_MIN, 'a secret for markers must have at least 16 bytes');
  assert(Number.isSafeInteger(index) && index >= 0, 'the index of a marker must be a whole number from zero up');
  const named = JSON.stringify(['cofferdam marker 1', owner, period, index]);
  const code = createHmac('sha256', secret).update(named).digest().subarray(0, CODE_BYTES);
  return { text: MARKER_PREFIX + base32(code), owner, period, index };
}

/** Every marker of these owners and periods, `perOwner` for each pair, in order of owner, period, index. */
export function enumerateMarkers(
  secret: Uint8Array,
  owners: readonly string[],
  periods: readonly string[],
  perOwner: number,
): Marker[] {
  const markers: Marker[] = [];
  for (const owner of owners) {
    for (const period of periods) {
      for (let index = 0; index < perOwner; index++) markers.push(makeMarker(secret, owner, period, index));
    }
  }
  return markers;
}
