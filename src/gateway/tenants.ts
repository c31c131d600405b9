import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { assert } from '../base/assert.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { KEYS_MAX, TENANTS_SEEN_MAX } from './bounds.js';
import { checkLimits, type TenantLimits } from './tenant-limits.js';

export interface TenantKey {
  /** SHA-256 of the key: 64 hex digits. */
  readonly sha256: string;
  readonly disabled?: boolean;
}

export interface TenantConfig {
  readonly name: string;
  readonly keys: readonly TenantKey[];
  /** @default none */
  readonly limits?: TenantLimits;
}

export interface Tenant {
  /** The owner in the page ledgers: 1 and up, in the order in which the tenants were first seen; never another tenant's. */
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

const NO_LIMITS: TenantLimits = {};
const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/i;

/**
 * Who a key belongs to. What came is hashed first, so that its length says nothing, and the digest is compared with all
 * digests, each in constant time, so that neither a match nor its place shows in the time taken.
 */
export class TenantRegistry {
  /** A number that no tenant has: the self-test's owner. */
  readonly selfTestNumber: number;
  readonly #saltSecret: string | Buffer;
  readonly #equal: (a: Buffer, b: Buffer) => boolean;
  #tenants: readonly Tenant[] = [];
  #limits: ReadonlyMap<Tenant, TenantLimits> = new Map();
  #rows: readonly KeyRow[] = [];
  /** Every tenant there ever was, by name: who comes back owns what it owned. */
  #seen: ReadonlyMap<string, Tenant> = new Map();

  /** Throws CodedError `usage`. `equal` is for tests that count comparisons. */
  constructor(
    configs: readonly TenantConfig[],
    saltSecret: string | Buffer,
    equal: (a: Buffer, b: Buffer) => boolean = timingSafeEqual,
  ) {
    this.#equal = equal;
    this.#saltSecret = saltSecret;
    this.selfTestNumber = configs.length + 1;
    this.replace(configs);
  }

  /** In the order of configuration. */
  get tenants(): readonly Tenant[] {
    return this.#tenants;
  }

  /**
   * Other tenants and keys from the next look-up on, all at once; a tenant of the same name stays the same one. Throws CodedError
   * `usage`, and then nothing has changed.
   */
  replace(configs: readonly TenantConfig[]): void {
    const seen = new Map(this.#seen);
    const tenants = configs.map(({ name }) => {
      const tenant = seen.get(name) ?? this.#newTenant(checkedName(name), seen.size + 1);
      seen.set(name, tenant);
      return tenant;
    });
    const rows = configs.flatMap((config, index) => config.keys.map((key) => keyRow(tenants[index]!, key)));
    checkWhole(tenants, rows);
    for (const { name, limits } of configs) if (limits !== undefined) checkLimits(name, limits);
    if (seen.size > TENANTS_SEEN_MAX) {
      const change = 'start the server again.';
      throw new CodedError(
        'usage',
        `Expected at most ${TENANTS_SEEN_MAX} tenants since the start, got more; ${change}`,
      );
    }
    this.#seen = seen;
    this.#tenants = tenants;
    this.#limits = new Map(configs.map(({ limits }, index) => [tenants[index]!, limits ?? NO_LIMITS]));
    this.#rows = rows;
  }

  /** As last configured; none for a tenant that is gone. */
  limitsOf(tenant: Tenant): TenantLimits {
    return this.#limits.get(tenant) ?? NO_LIMITS;
  }

  #newTenant(name: string, ordinal: number): Tenant {
    const number = ordinal < this.selfTestNumber ? ordinal : ordinal + 1;
    return { number, name, salt: createHmac('sha256', this.#saltSecret).update(name).digest('hex') };
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

function checkWhole(tenants: readonly Tenant[], rows: readonly KeyRow[]): void {
  if (tenants.length === 0) throw new CodedError('usage', 'Expected at least one tenant, got none.');
  if (rows.length > KEYS_MAX) {
    throw new CodedError('usage', `Expected at most ${KEYS_MAX} keys, got ${rows.length}.`);
  }
  const names = new Set(tenants.map((tenant) => tenant.name.toLowerCase()));
  if (names.size !== tenants.length) throw new CodedError('usage', 'Expected every tenant to have its own name.');
  const digests = new Set(rows.map((row) => row.digest.toString('hex')));
  if (digests.size !== rows.length) {
    throw new CodedError('usage', 'Expected every key to be used once, got one key twice.');
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
