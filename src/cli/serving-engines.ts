/** What serves behind the gateway, opened: the embedded engine in its threads, or engines that are there. */
import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import type { EngineConfig } from '../engine/config.js';
import { ThreadedEngine } from '../engine/threaded-engine.js';
import type { FindingLog } from '../findings/finding-log.js';
import { type EffectiveLimit, effectiveLimit } from '../handoff/admission.js';
import type { EngineStats } from '../handoff/engine-port.js';
import { ALL_GUARDS, guardBits } from '../handoff/guards.js';
import type { Rules } from '../handoff/layout.js';
import { countTokens, encode, renderChat, TokenDecoder } from '../tokenizer/bytes.js';
import { EmbeddedUpstream } from '../upstream/embedded/adapter.js';
import type { Capacity, Upstream } from '../upstream/upstream.js';
import { guardEngineFinding } from './engine-findings.js';
import { embeddedEngineConfig } from './engine-options.js';
import type { FaultOptions, ServeOptions } from './options.js';
import { openTrace, traceFinding } from './trace-file.js';
import { makeUpstreams } from './upstreams/make.js';
import { noticeFinding } from './upstreams/notices.js';

export interface ServingEngine {
  /** As the start, metrics and findings call it. */
  readonly name: string;
  readonly upstream: Upstream;
  /** By what prompts are counted, in words; null: there is nothing to say. */
  readonly counted: string | null;
}

export interface ServingEngines {
  /** At least one. */
  readonly list: readonly ServingEngine[];
  readonly rules: Rules;
  /** The embedded engine's own numbers; null for other engines. */
  readonly stats: (() => EngineStats) | null;
  /** The lab model's answers are copies: chance adds nothing to them unless a request asks for it. Null: OpenAI's default. */
  readonly temperatureDefault: number | null;
  /** False: a trace was asked for, and is not whole. */
  close(): Promise<boolean>;
}

export interface EnginesWorld {
  readonly clock: Clock;
  readonly findings: FindingLog;
  readonly selfTestTenant: number;
  /** One line. */
  readonly log: (line: string) => void;
}

const TEMPERATURE_DEFAULT = 0;

/** Throws CodedError `usage` where an engine can't be had, or a small pool is not to be accepted. */
export function openEngines(options: ServeOptions, world: EnginesWorld): Promise<ServingEngines> {
  return options.upstreams.length === 0 ? openEmbedded(options, world) : openThere(options, world);
}

async function openEmbedded(options: ServeOptions, world: EnginesWorld): Promise<ServingEngines> {
  const config = embeddedEngineConfig(options.sizes, options.broken);
  checkEmbedded(config, options.onSmallPool);
  const { clock, findings, selfTestTenant } = world;
  const trace = await openTrace(options.trace, config, (why) => void findings.record(traceFinding(why)));
  const engine = await ThreadedEngine.start({
    config,
    clock,
    ...(trace === null ? {} : { trace: trace.writer }),
    onFinding: (finding) => void findings.record(guardEngineFinding(finding)),
  });
  const codec = { encode, countTokens, renderChat, newDecoder: () => new TokenDecoder() };
  const upstream = new EmbeddedUpstream({ engine, clock, codec, selfTestTenant });
  return {
    list: [{ name: 'embedded', upstream, counted: null }],
    rules: config.rules,
    stats: () => engine.stats(),
    temperatureDefault: TEMPERATURE_DEFAULT,
    close: async () => {
      await engine.close();
      await trace?.close();
      return trace === null || trace.stopped === null;
    },
  };
}

async function openThere(options: ServeOptions, world: EnginesWorld): Promise<ServingEngines> {
  const { clock, findings, log } = world;
  const made = await makeUpstreams(options.upstreams, {
    clock,
    wait: options.running.wait,
    isShared: options.running.workers > 1,
    onNotice: (notice) => void findings.record(noticeFinding(notice)),
    log,
  });
  try {
    for (const { name, upstream } of made.list) checkSmallPool(name, upstream.capacity(), options.onSmallPool);
  } catch (thrown) {
    await made.close();
    throw thrown;
  }
  return {
    list: made.list,
    rules: { faults: 0, guards: guardsOf(options.broken) },
    stats: null,
    temperatureDefault: null,
    close: async () => {
      await made.close();
      return true;
    },
  };
}

function guardsOf({ guards, guardsOff }: FaultOptions): number {
  return guards === 'off' ? 0 : ALL_GUARDS & ~guardBits(guardsOff);
}

function checkEmbedded(config: EngineConfig, onSmallPool: ServeOptions['onSmallPool']): void {
  if (effectiveLimit(config) === null) {
    throw new CodedError('usage', 'Expected a context and pools that hold a prompt, got none that do.');
  }
  checkSmallPool(null, config, onSmallPool);
}

/** Throws where a pool is smaller than the context, and that is not to be accepted. */
function checkSmallPool(
  name: string | null,
  capacity: Pick<Capacity, 'context' | 'prefillPool' | 'decodePool'>,
  onSmallPool: ServeOptions['onSmallPool'],
): void {
  const limit: EffectiveLimit | null = effectiveLimit(capacity);
  if (limit === null || onSmallPool === 'lower' || limit.limitedBy === 'advertised context') return;
  const pool = limit.limitedBy === 'prefill pool' ? capacity.prefillPool : capacity.decodePool;
  const lower = name === null ? 'lower `--context`' : 'lower the context';
  throw new CodedError(
    'usage',
    `Expected a ${limit.limitedBy} of at least the advertised context of ${capacity.context} tokens${name === null ? '' : ` at ${name}`}, got ${pool} tokens. ` +
      `Raise the pool, ${lower}, or start with \`--on-small-pool lower\`.`,
  );
}
