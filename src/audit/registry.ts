/** Every rule, in the order in which checks are listed. docs/RULES.md holds the same set. */
import type { Rule } from './rule.js';
import { acceptLimitsDiffer } from './rules/capacity-accept-limits-differ.js';
import { autoTruncate } from './rules/capacity-auto-truncate.js';
import { blockOverride } from './rules/capacity-block-override.js';
import { contextsDiffer } from './rules/capacity-contexts-differ.js';
import { limitBelowContext } from './rules/capacity-limit-below-context.js';
import { poolBelowContext } from './rules/capacity-pool-below-context.js';
import { poolMargin } from './rules/capacity-pool-margin.js';
import { poolWarned } from './rules/capacity-pool-warned.js';
import { ranksDiffer } from './rules/capacity-ranks-differ.js';
import { replicasDiffer } from './rules/capacity-replicas-differ.js';
import { slidingPool } from './rules/capacity-sliding-pool.js';
import { slotsOvercommitted } from './rules/capacity-slots-overcommitted.js';
import { trainedContext } from './rules/capacity-trained-context.js';
import { canaryOff } from './rules/detection-canary-off.js';
import { canaryPerturbed } from './rules/detection-canary-perturbed.js';
import { canaryRealData } from './rules/detection-canary-real-data.js';
import { checksumOff } from './rules/detection-checksum-off.js';
import { checksumOneSided } from './rules/detection-checksum-one-sided.js';
import { checksumSkipped } from './rules/detection-checksum-skipped.js';
import { checksumUnsafe } from './rules/detection-checksum-unsafe.js';
import { corruptionSeen } from './rules/detection-corruption-seen.js';
import { coverage } from './rules/detection-coverage.js';
import { metricsOff } from './rules/detection-metrics-off.js';
import { pairMismatch } from './rules/detection-pair-mismatch.js';
import { retrievedTooFew } from './rules/detection-retrieved-too-few.js';
import { unproven } from './rules/detection-unproven.js';
import { adminKeyAlone } from './rules/exposure-admin-key-alone.js';
import { anyOrigin } from './rules/exposure-any-origin.js';
import { bootstrapPort } from './rules/exposure-bootstrap-port.js';
import { boundToAll } from './rules/exposure-bound-to-all.js';
import { cacheApi } from './rules/exposure-cache-api.js';
import { cachePorts } from './rules/exposure-cache-ports.js';
import { compressedBodies } from './rules/exposure-compressed-bodies.js';
import { devMode } from './rules/exposure-dev-mode.js';
import { headerOverrides } from './rules/exposure-header-overrides.js';
import { keysInClear } from './rules/exposure-keys-in-clear.js';
import { logitProcessor } from './rules/exposure-logit-processor.js';
import { messagePorts } from './rules/exposure-message-ports.js';
import { miniLb } from './rules/exposure-mini-lb.js';
import { noKey } from './rules/exposure-no-key.js';
import { openRoutes } from './rules/exposure-open-routes.js';
import { pairReachable } from './rules/exposure-pair-reachable.js';
import { prefillAllowList } from './rules/exposure-prefill-allow-list.js';
import { requestLogs } from './rules/exposure-request-logs.js';
import { requestTemplates } from './rules/exposure-request-templates.js';
import { roleSwitch } from './rules/exposure-role-switch.js';
import { routerOpen } from './rules/exposure-router-open.js';
import { sideChannel } from './rules/exposure-side-channel.js';
import { slotsShown } from './rules/exposure-slots-shown.js';
import { tokenRoutes } from './rules/exposure-token-routes.js';
import { transferParamsPass } from './rules/exposure-transfer-params-pass.js';
import { transferPort } from './rules/exposure-transfer-port.js';
import { decodeNotTold } from './rules/rejection-decode-not-told.js';
import { handedOff } from './rules/rejection-handed-off.js';
import { abortRace } from './rules/release-abort-race.js';
import { allRequestsEnded } from './rules/release-all-requests-ended.js';
import { backendWithoutDrain } from './rules/release-backend-without-drain.js';
import { batchUncapped } from './rules/release-batch-uncapped.js';
import { deferredOff } from './rules/release-deferred-off.js';
import { deferredTimeouts } from './rules/release-deferred-timeouts.js';
import { fakeBackend } from './rules/release-fake-backend.js';
import { faultInjection } from './rules/release-fault-injection.js';
import { handleMissing } from './rules/release-handle-missing.js';
import { hybridNixl } from './rules/release-hybrid-nixl.js';
import { invalidBlocksRead } from './rules/release-invalid-blocks-read.js';
import { leaseAgainstPool } from './rules/release-lease-against-pool.js';
import { leasesExpired } from './rules/release-leases-expired.js';
import { loadFailurePolicy } from './rules/release-load-failure-policy.js';
import { nixlMori } from './rules/release-nixl-mori.js';
import { queueBlocked } from './rules/release-queue-blocked.js';
import { waitedOut } from './rules/release-waited-out.js';
import { waitingTimeout } from './rules/release-waiting-timeout.js';
import { cachedTokensShown } from './rules/sharing-cached-tokens-shown.js';
import { decodeRadixCache } from './rules/sharing-decode-radix-cache.js';
import { exampleConnector } from './rules/sharing-example-connector.js';
import { flexkv } from './rules/sharing-flexkv.js';
import { hashSeed } from './rules/sharing-hash-seed.js';
import { hashWeak } from './rules/sharing-hash-weak.js';
import { lmcacheInProcess } from './rules/sharing-lmcache-in-process.js';
import { lmcacheSalt } from './rules/sharing-lmcache-salt.js';
import { oneKey } from './rules/sharing-one-key.js';
import { outerTiers } from './rules/sharing-outer-tiers.js';
import { prefixCacheUnsalted } from './rules/sharing-prefix-cache-unsalted.js';
import { promptCache } from './rules/sharing-prompt-cache.js';
import { sessions } from './rules/sharing-sessions.js';
import { slotFiles } from './rules/sharing-slot-files.js';
import { storageIgnoresSalt } from './rules/sharing-storage-ignores-salt.js';
import { storeTenants } from './rules/sharing-store-tenants.js';
import { contextFitted } from './rules/sources-context-fitted.js';
import { contextNotSet } from './rules/sources-context-not-set.js';
import { advisory } from './rules/version-advisory.js';
import { nightly } from './rules/version-nightly.js';
import { pairDiffers } from './rules/version-pair-differs.js';
import { unread } from './rules/version-unread.js';
import { controlPlane } from './rules/exposure-control-plane.js';
import { pickerFailsOpen } from './rules/exposure-picker-fails-open.js';
import { prefillFallback } from './rules/rejection-prefill-fallback.js';
import { cancelNotPassed } from './rules/release-cancel-not-passed.js';

export const RULES: readonly Rule[] = [
  poolBelowContext,
  acceptLimitsDiffer,
  autoTruncate,
  blockOverride,
  contextsDiffer,
  limitBelowContext,
  poolMargin,
  poolWarned,
  ranksDiffer,
  replicasDiffer,
  slidingPool,
  slotsOvercommitted,
  trainedContext,
  advisory,
  nightly,
  pairDiffers,
  unread,
  decodeNotTold,
  handedOff,
  prefillFallback,
  abortRace,
  allRequestsEnded,
  backendWithoutDrain,
  batchUncapped,
  cancelNotPassed,
  deferredOff,
  deferredTimeouts,
  fakeBackend,
  faultInjection,
  handleMissing,
  hybridNixl,
  invalidBlocksRead,
  leaseAgainstPool,
  leasesExpired,
  loadFailurePolicy,
  nixlMori,
  queueBlocked,
  waitedOut,
  waitingTimeout,
  canaryOff,
  canaryPerturbed,
  canaryRealData,
  checksumOff,
  checksumOneSided,
  checksumSkipped,
  checksumUnsafe,
  corruptionSeen,
  coverage,
  metricsOff,
  pairMismatch,
  retrievedTooFew,
  unproven,
  cachedTokensShown,
  decodeRadixCache,
  exampleConnector,
  flexkv,
  hashSeed,
  hashWeak,
  lmcacheInProcess,
  lmcacheSalt,
  oneKey,
  outerTiers,
  prefixCacheUnsalted,
  promptCache,
  sessions,
  slotFiles,
  storageIgnoresSalt,
  storeTenants,
  adminKeyAlone,
  anyOrigin,
  bootstrapPort,
  boundToAll,
  cacheApi,
  cachePorts,
  compressedBodies,
  controlPlane,
  devMode,
  headerOverrides,
  keysInClear,
  logitProcessor,
  messagePorts,
  miniLb,
  noKey,
  openRoutes,
  pairReachable,
  pickerFailsOpen,
  prefillAllowList,
  requestLogs,
  requestTemplates,
  roleSwitch,
  routerOpen,
  sideChannel,
  slotsShown,
  tokenRoutes,
  transferParamsPass,
  transferPort,
  contextFitted,
  contextNotSet,
];
