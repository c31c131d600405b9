/** `cofferdam serve`: the embedded engine, the gateway in front of it and the operators' port, until a signal ends them. */
import { randomBytes } from 'node:crypto';
import { type Clock, SystemClock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { guardEngineFinding } from './engine-findings.js';
import type { EngineConfig } from '../engine/config.js';
import { ThreadedEngine } from '../engine/threaded-engine.js';
import { FindingLog } from '../findings/finding-log.js';
import { capacityFindings } from '../gateway/findings.js';
import { OperatorsServer } from '../gateway/operators.js';
import { Gateway, standingHeaders } from '../gateway/server.js';
import { TenantRegistry } from '../gateway/tenants.js';
import { type EffectiveLimit, effectiveLimit } from '../handoff/admission.js';
import { faultsOf } from '../handoff/faults.js';
import { countTokens, encode, renderChat, TokenDecoder } from '../tokenizer/bytes.js';
import { EmbeddedUpstream } from '../upstream/embedded/adapter.js';
import { embeddedEngineConfig } from './engine-options.js';
import { operatorsPage } from './operators-page.js';
import { type FreshKeys, type KeysFile, makeFreshKeys, writeKeysFile } from './fresh-keys.js';
import { type CliIo, EXIT } from './io.js';
import type { ServeOptions } from './options.js';
import { brokenMark, type StartFacts, startLines } from './start-lines.js';
import { untilSignal } from './signals.js';

/** The lab model's answers are copies; chance adds nothing to them unless a request asks for it. */
const TEMPERATURE_DEFAULT = 0;
/** As long as the digest that the salts are made with. */
const SALT_SECRET_BYTES = 32;
/** What may be shown of a key: the first digits of its SHA-256. */
const FINGERPRINT_DIGITS = 12;

/** Everything that serves, and how it ends. */
export interface Serving {
  readonly facts: StartFacts;
  readonly fresh: FreshKeys | null;
  close(): Promise<void>;
}

/** Starts all of it, or nothing. Throws CodedError. */
export async function startServing(options: ServeOptions): Promise<Serving> {
  const config = embeddedEngineConfig(options.sizes, options.broken);
  const limit = checkedLimit(config, options.onSmallPool);
  const clock = new SystemClock();
  const findings = new FindingLog(clock);
  const fresh = options.tenants.length === 0 ? makeFreshKeys() : null;
  const tenants = fresh?.tenants ?? options.tenants;
  const registry = new TenantRegistry(
    tenants.map(({ name, key }) => ({ name, keys: [{ sha256: key.sha256 }] })),
    randomBytes(SALT_SECRET_BYTES),
  );
  const engine = await ThreadedEngine.start({
    config,
    clock,
    onFinding: (finding) => void findings.record(guardEngineFinding(finding)),
  });
  const ports = openPorts(options, config, engine, registry, findings, clock);
  try {
    const { opsUrl, url } = await ports.listen();
    const facts: StartFacts = {
      url,
      opsUrl,
      advertised: config.context,
      prefillPool: config.prefillPool,
      decodePool: config.decodePool,
      effectiveLimit: limit.tokens,
      limitedBy: limit.limitedBy,
      tenants: tenants.map(({ name, key }) => ({ name, keyFingerprint: key.sha256.slice(0, FINGERPRINT_DIGITS) })),
      rules: config.rules,
    };
    return { facts, fresh, close: () => ports.close() };
  } catch (thrown) {
    await ports.close();
    throw thrown;
  }
}

/** The limit that will be advertised; throws where there is none, or where a small pool is not to be accepted. */
function checkedLimit(config: EngineConfig, onSmallPool: ServeOptions['onSmallPool']): EffectiveLimit {
  const limit = effectiveLimit(config);
  if (limit === null) {
    throw new CodedError('usage', 'Expected a context and pools that hold a prompt, got none that do.');
  }
  if (onSmallPool === 'lower' || limit.limitedBy === 'advertised context') return limit;
  const pool = limit.limitedBy === 'prefill pool' ? config.prefillPool : config.decodePool;
  throw new CodedError(
    'usage',
    `Expected a ${limit.limitedBy} of at least the advertised context of ${config.context} tokens, got ${pool} tokens. ` +
      'Raise the pool, lower `--context`, or start with `--on-small-pool lower`.',
  );
}

interface Ports {
  listen(): Promise<{ readonly url: string; readonly opsUrl: string }>;
  close(): Promise<void>;
}

/** The tenants' port and the operators', over one engine. */
function openPorts(
  options: ServeOptions,
  config: EngineConfig,
  engine: ThreadedEngine,
  registry: TenantRegistry,
  findings: FindingLog,
  clock: Clock,
): Ports {
  const faults = faultsOf(config.rules.faults);
  const { guards } = config.rules;
  const upstream = new EmbeddedUpstream({
    engine,
    clock,
    codec: { encode, countTokens, renderChat, newDecoder: () => new TokenDecoder() },
    selfTestTenant: registry.tenants.length + 1,
  });
  for (const finding of capacityFindings(upstream.capacity())) findings.record(finding);
  const gateway = new Gateway({
    upstream,
    tenants: registry,
    clock,
    guards,
    faults,
    findings: { raise: (finding) => void findings.record(finding) },
    stats: () => engine.stats(),
    temperatureDefault: TEMPERATURE_DEFAULT,
  });
  const operators = new OperatorsServer({
    upstream,
    metrics: gateway.metrics,
    outOfRotation: () => gateway.watch.rotation.reason,
    findings: () => findings.list(),
    page: operatorsPage({ upstream, gateway, findings, clock, guards, faults, stats: () => engine.stats() }),
    clock,
    at: { host: options.host, port: options.opsPort },
    ...(options.opsKey === null ? {} : { opsKeySha256: options.opsKey.sha256 }),
    standingHeaders: standingHeaders(guards, faults),
  });
  return {
    listen: async () => {
      const { url: opsUrl } = await operators.listen();
      const { url } = await gateway.listen({ host: options.host, port: options.port });
      return { url, opsUrl };
    },
    close: async () => {
      await Promise.all([gateway.close(), operators.close()]);
      await engine.close();
    },
  };
}

/** Resolves with the exit code when a signal has ended everything. */
export async function runServe(options: ServeOptions, io: CliIo): Promise<number> {
  const serving = await startServing(options);
  const ended = untilSignal();
  let file: KeysFile | null = null;
  try {
    const showsKeys = io.outIsTerminal && options.output === 'table';
    if (serving.fresh !== null && !showsKeys) file = writeKeysFile(serving.fresh.keys);
    const keys = serving.fresh?.keys ?? null;
    if (options.output === 'json') {
      const mark = brokenMark(serving.facts.rules);
      const { rules: _rules, ...facts } = serving.facts;
      // With everything on there is no such field; with a fault on or a guard off the line says so, as every line does.
      io.out(`${JSON.stringify(mark === '' ? facts : { ...facts, unsafe: mark.trim() })}\n`);
      if (file !== null) io.err(`${mark}keys of the tenants: ${file.path}\n`);
    } else {
      io.out(startLines(serving.facts, { keys: showsKeys ? keys : null, keysFile: file?.path ?? null }));
    }
    const signal = await ended;
    if (options.output !== 'json') io.out(`\n${signal}: open requests end, then the server does.\n`);
  } finally {
    file?.remove();
    await serving.close();
  }
  return EXIT.clean;
}
