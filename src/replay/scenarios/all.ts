import type { FaultName } from '../../handoff/faults.js';
import type { Scenario } from '../scenario.js';
import { countUnchecked } from './count-unchecked.js';
import { prefixHashCollision } from './prefix-hash-collision.js';
import { rejectedStaysAlive } from './rejected-stays-alive.js';
import { retryKeepsAttempt } from './retry-keeps-attempt.js';
import { reuseBeforeDrain } from './reuse-before-drain.js';
import { roomCollision } from './room-collision.js';
import { silentAbort } from './silent-abort.js';
import { staleHandle } from './stale-handle.js';
import { timeoutAuthorisesReuse } from './timeout-authorises-reuse.js';
import { tornWrite } from './torn-write.js';
import { unannouncedRejection } from './unannounced-rejection.js';
import { unfencedRestart } from './unfenced-restart.js';
import { unsaltedPrefix } from './unsalted-prefix.js';

export const SCENARIOS: Readonly<Record<FaultName, Scenario>> = {
  'rejected-stays-alive': rejectedStaysAlive,
  'count-unchecked': countUnchecked,
  'silent-abort': silentAbort,
  'reuse-before-drain': reuseBeforeDrain,
  'timeout-authorises-reuse': timeoutAuthorisesReuse,
  'room-collision': roomCollision,
  'stale-handle': staleHandle,
  'retry-keeps-attempt': retryKeepsAttempt,
  'unfenced-restart': unfencedRestart,
  'torn-write': tornWrite,
  'unannounced-rejection': unannouncedRejection,
  'unsalted-prefix': unsaltedPrefix,
  'prefix-hash-collision': prefixHashCollision,
};
