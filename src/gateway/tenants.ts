import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { assert } from '../base/assert.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { KEYS_MAX } from './bounds.js';

export interface TenantKey {
  /** SHA-256 of the key: 64 hex digits. */
  readonly sha256: string;
  readonly disabled?: boolean;
}

export interface TenantConfig {
  readonly name: string;
  readonly keys: readonly TenantKey[];
}

export interface Tenant {
  /** The owner in the page ledgers: 1 and up, in the order of configuration. */
  readonly number: number;
  readonly name: string;
  /** HMAC-SHA-256(secret, name), 64 hex digits. */
  readonly salt: string;
}

/** The SHA-256 of a key in hex, as configuration holds it. */
export function keyDigest(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

interface KeyRow {
  readonly digest: Buffer;
  readonly tenant: Tenant;
  readonly disabled: boolean;
}

const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/i;

/**
 * Who a key belongs to. What came is hashed first, so that its length says nothing, and the digest is compared with all
 * digests, each in constant time, so that neither a match nor its place shows in the time taken.
 */
export class TenantRegistry {
  readonly tenants: readonly Tenant[];
  readonly #rows: readonly KeyRow[];
  readonly #equal: (a: Buffer, b: Buffer) => boolean;

  /** Throws CodedError `usage`. `equal` is for tests that count comparisons. */
  constructor(
    configs: readonly TenantConfig[],
    saltSecret: string | Buffer,
    equal: (a: Buffer, b: Buffer) => boolean = timingSafeEqual,
  ) {
    this.#equal = equal;
    this.tenants = configs.map((config, index) => ({
      number: index + 1,
      name: checkedName(config.name),
      salt: createHmac('sha256', saltSecret).update(config.name).digest('hex'),
    }));
    this.#rows = configs.flatMap((config, index) => config.keys.map((key) => keyRow(this.tenants[index]!, key)));
    this.#checkWhole();
  }

  #checkWhole(): void {
    if (this.tenants.length === 0) throw new CodedError('usage', 'Expected at least one tenant, got none.');
    if (this.#rows.length > KEYS_MAX) {
      throw new CodedError('usage', `Expected at most ${KEYS_MAX} keys, got ${this.#rows.length}.`);
    }
    const names = new Set(this.tenants.map((tenant) => tenant.name.toLowerCase()));
    if (names.size !== this.tenants.length)
      throw new CodedError('usage', 'Expected every tenant to have its own name.');
    const digests = new Set(this.#rows.map((row) => row.digest.toString('hex')));
    if (digests.size !== this.#rows.length) {
      throw new CodedError('usage', 'Expected every key to be used once, got one key twice.');
    }
  }

  /** The tenant of a key; null for an unknown key, a disabled one, and none (`null`) alike, after the same work. */
  lookUp(key: string | null): Tenant | null {
    const digest = createHash('sha256')
      .update(key ?? '')
      .digest();
    let found = -1;
    for (let i = 0; i < this.#rows.length; i++) {
      if (this.#equal(this.#rows[i]!.digest, digest)) found = i;
    }
    const row = this.#rows[found];
    return row === undefined || row.disabled || key === null ? null : row.tenant;
  }
}

function checkedName(name: string): string {
  if (NAME.test(name)) return name;
  throw new CodedError(
    'usage',
    `Expected a tenant's name of 1 to 63 letters, digits, \`-\` and \`_\`, beginning with a letter or digit, got ${shown(name)}.`,
  );
}

function keyRow(tenant: Tenant, key: TenantKey): KeyRow {
  if (!/^[0-9a-f]{64}$/i.test(key.sha256)) {
    throw new CodedError('usage', `Expected a SHA-256 of 64 hex digits for a key of tenant ${shown(tenant.name)}.`);
  }
  const digest = Buffer.from(key.sha256, 'hex');
  assert(digest.length === 32, 'a SHA-256 digest has 32 bytes');
  return { digest, tenant, disabled: key.disabled === true };
}
