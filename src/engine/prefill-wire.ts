/** The wire from prefill's pool into decode's; late and out of order where a fault needs it so. */
import { PagePool } from '../kv/pool.js';
import type { RegistrationTable } from '../kv/registration.js';
import { Wire } from '../kv/wire.js';
import { type EngineConfig, hasFault } from './config.js';
import type { DecodeTarget } from './traffic.js';

/** How late and how mixed up writes land where a fault needs them late. */
const LATE_WRITES_MS = { min: 30, max: 90 } as const;

export function wireTo(
  target: DecodeTarget,
  registrations: RegistrationTable,
  source: PagePool,
  config: EngineConfig,
  onSettled: (slot: number, attempt: number) => void,
): Wire {
  const isLate = hasFault(config.rules, 'reuse-before-drain') || hasFault(config.rules, 'unfenced-restart');
  const { min, max } = LATE_WRITES_MS;
  const { buffer, base, pages } = target;
  return new Wire({
    source,
    target: PagePool.attach({ buffer, base, pages, geometry: source.geometry, node: 'decode' }),
    registrations,
    handle: 0,
    delay: isLate ? { seed: config.seed, minMs: min, maxMs: max } : null,
    reorder: isLate ? { seed: config.seed + 1 } : null,
    onSettled,
  });
}
