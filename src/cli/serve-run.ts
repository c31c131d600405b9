/** `cofferdam serve`: the embedded engine, the gateway in front of it and the operators' port, until a signal ends them. */
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { isatty } from 'node:tty';
import { type Clock, SystemClock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { escapeControl } from '../base/text.js';
import { FileWatch } from '../config/watch.js';
import { configFingerprint, ConfigReloader, type Loaded } from './config-reload.js';
import type { Refused } from './config-file.js';
import { escapeFinding, type Finding, isAtLeast } from '../findings/finding.js';
import { FindingLog } from '../findings/finding-log.js';
import { CLOSE_GRACE_MS } from '../gateway/bounds.js';
import { capacityFindings } from '../gateway/findings.js';
import { OperatorsServer } from '../gateway/operators.js';
import { Gateway, type GivenMarkers, standingHeaders } from '../gateway/server.js';
import { type TenantConfig, TenantRegistry } from '../gateway/tenants.js';
import { faultsOf } from '../handoff/faults.js';
import { guardBit } from '../handoff/guards.js';
import { liveMarkersOf } from './config-markers.js';
import { operatorsPage } from './operators-page.js';
import { type FreshKeys, type KeysFile, makeFreshKeys, writeKeysFile } from './fresh-keys.js';
import { type CliIo, EXIT } from './io.js';
import type { ServeFlags } from './flags.js';
import type { TenantOption } from './keys.js';
import type { ServeOptions } from './options.js';
import type { ListenTls } from '../wire/index.js';
import { readTls, watchTls } from './tls-files.js';
import { UsageLog } from './usage-log.js';
import { WorkerLine } from './worker-line.js';
import { workerOptions } from './workers-options.js';
import { openEngines, type ServingEngines } from './serving-engines.js';
import { startFacts, type StartFacts } from './start-facts.js';
import { brokenMark, startLines } from './start-lines.js';
import { type HangUp, hangUpMeaning, untilSignal } from './signals.js';

/** As long as the digest that the salts are made with. */
const SALT_SECRET_BYTES = 32;

/** Everything that serves, and how it ends. */
export interface Serving {
  readonly facts: StartFacts;
  readonly fresh: FreshKeys | null;
  readonly findings: FindingLog;
  readonly metrics: Gateway['metrics'];
  /** Tenants, keys and bounds from now on; what else `options` says is not looked at. Throws CodedError `usage`, and then nothing has changed. */
  reconfigure(options: ServeOptions): void;
  /** Resolves when nothing is open any more, at the latest after `graceMs`. */
  drain(graceMs: number): Promise<void>;
  /** False: a trace was asked for, and is not whole. */
  close(): Promise<boolean>;
}

/** A file of configuration, and how it is read again. */
export interface ServeConfig {
  readonly loaded: Loaded;
  readonly load: () => Loaded | Refused;
  readonly flags: ServeFlags;
}

/** Starts all of it, or nothing. `err` takes the lines of findings that are to be logged. Throws CodedError. */
export async function startServing(options: ServeOptions, err: (text: string) => void = () => {}): Promise<Serving> {
  const clock = new SystemClock();
  const tls = options.running.tls === null ? null : readTls(options.running.tls);
  const findings = new LoudFindings(clock, options.bounds.findingsLog, err);
  const fresh = options.tenants.length === 0 ? makeFreshKeys() : null;
  const tenants = fresh?.tenants ?? options.tenants;
  const secret = options.running.secret?.reveal() ?? randomBytes(SALT_SECRET_BYTES);
  const registry = new TenantRegistry(tenantConfigs(tenants), secret);
  const engines = await openEngines(options, {
    clock,
    findings,
    selfTestTenant: registry.selfTestNumber,
    log: (line) => err(`${escapeControl(line)}\n`),
  });
  const usage = options.running.usage === null ? null : new UsageLog({ ...options.running.usage, findings });
  const ports = openPorts({ options, engines, registry, findings, clock, tls, usage });
  const watch =
    options.running.tls === null
      ? null
      : watchTls({ clock, files: options.running.tls, replace: (next) => ports.replaceTls(next), findings });
  const close = async (): Promise<boolean> => {
    watch?.stop();
    await ports.close();
    await usage?.close();
    return await engines.close();
  };
  try {
    const urls = await ports.listen();
    const facts = startFacts(urls, tenants, engines);
    const reconfigure = (next: ServeOptions): void => {
      const named = next.tenants.length > 0 ? next.tenants : fresh?.tenants;
      if (named === undefined) {
        const change = 'Without tenants only a start makes fresh keys.';
        throw new CodedError('usage', `Expected \`tenants\` to go on naming at least one, got none. ${change}`);
      }
      ports.reconfigure(tenantConfigs(named), next);
      findings.logged = next.bounds.findingsLog;
    };
    return { ...ports, facts, fresh, findings, reconfigure, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

function tenantConfigs(tenants: readonly TenantOption[]): TenantConfig[] {
  return tenants.map(({ name, keys }) => ({ name, keys: keys.map(({ sha256 }) => ({ sha256 })) }));
}

/** The live markers of the tenants that there are. */
function givenMarkers({ running }: ServeOptions, { tenants }: TenantRegistry): GivenMarkers {
  const { markers } = running;
  if (markers === null) return { markers: [], holdBack: null };
  const names = tenants.map(({ name }) => name);
  return { markers: liveMarkersOf(markers, names), holdBack: markers.holdBack };
}

/** A log that also writes new findings of some severity to standard error. */
class LoudFindings extends FindingLog {
  logged: ServeOptions['bounds']['findingsLog'];
  readonly #err: (text: string) => void;

  constructor(clock: Clock, logged: ServeOptions['bounds']['findingsLog'], err: (text: string) => void) {
    super(clock);
    this.logged = logged;
    this.#err = err;
  }

  override record(finding: Finding): boolean {
    const isNew = super.record(finding);
    if (isNew && this.logged !== 'none' && isAtLeast(finding.severity, this.logged)) {
      this.#err(`${JSON.stringify({ finding: escapeFinding(finding) })}\n`);
    }
    return isNew;
  }
}

interface Ports {
  readonly metrics: Gateway['metrics'];
  listen(): Promise<{ readonly url: string; readonly opsUrl: string }>;
  reconfigure(tenants: readonly TenantConfig[], options: ServeOptions): void;
  replaceTls(tls: ListenTls): void;
  drain(graceMs: number): Promise<void>;
  close(): Promise<void>;
}

interface PortParts {
  readonly options: ServeOptions;
  readonly engines: ServingEngines;
  readonly registry: TenantRegistry;
  readonly findings: FindingLog;
  readonly clock: Clock;
  readonly tls: ListenTls | null;
  readonly usage: UsageLog | null;
}

/** The tenants' port and the operators', over all engines. */
function openPorts({ options, engines, registry, findings, clock, tls, usage }: PortParts): Ports {
  const { guards } = engines.rules;
  const faults = faultsOf(engines.rules.faults);
  const stats = engines.stats === null ? {} : { stats: engines.stats };
  const secure = tls === null ? {} : { tls };
  for (const { upstream } of engines.list) {
    for (const finding of capacityFindings(upstream.capacity())) findings.record(finding);
  }
  const gateway = new Gateway({
    upstreams: engines.list.map(({ upstream }) => upstream),
    engineNames: engines.list.map(({ name }) => name),
    tenants: registry,
    clock,
    guards,
    faults,
    findings: { raise: (finding) => void findings.record(finding) },
    ...stats,
    ...(engines.temperatureDefault === null ? {} : { temperatureDefault: engines.temperatureDefault }),
    // The shield stands before the guard `drain` and would hide that it is off.
    ...((guards & guardBit('drain')) === 0 ? { shield: { requestsMax: 0 } } : {}),
    ...secure,
    ...(usage === null ? {} : { onSettled: (settlement) => usage.append(settlement) }),
    ...options.bounds,
    ...givenMarkers(options, registry),
  });
  const operators = new OperatorsServer({
    engines: gateway.engines,
    metrics: gateway.metrics,
    findings: () => findings.list(),
    page: operatorsPage({ gateway, findings, clock, guards, faults, ...stats }),
    clock,
    at: { host: options.host, port: options.opsPort, exclusive: true },
    ...secure,
    ...(options.opsKey === null ? {} : { opsKeySha256: options.opsKey.sha256 }),
    standingHeaders: standingHeaders(guards, faults),
    hostNames: options.bounds.hostNames,
    draining: () => gateway.draining,
  });
  return {
    metrics: gateway.metrics,
    listen: async () => {
      const { url: opsUrl } = await operators.listen();
      const { url } = await gateway.listen({ host: options.host, port: options.port });
      return { url, opsUrl };
    },
    reconfigure: (tenants, next) => {
      gateway.reconfigure(tenants, next.bounds);
      gateway.giveMarkers(givenMarkers(next, registry));
      operators.replaceKey(next.opsKey?.sha256 ?? null);
    },
    replaceTls: (next) => {
      gateway.replaceTls(next);
      operators.replaceTls(next);
    },
    drain: (graceMs) => gateway.drain(graceMs),
    close: async () => {
      await Promise.all([gateway.close(), operators.close()]);
    },
  };
}

/** Resolves with the exit code when a signal has ended everything. */
export async function runServe(options: ServeOptions, config: ServeConfig | null, io: CliIo): Promise<number> {
  const serving = await startServing(options, (text) => io.err(text));
  const reloads = config === null ? null : startReloads(serving, config, io);
  const ended = untilSignal(hangUps(reloads, io));
  let file: KeysFile | null = null;
  let isWhole = true;
  try {
    const showsKeys = io.outIsTerminal && options.output === 'table';
    if (serving.fresh !== null && !showsKeys) file = writeKeysFile(serving.fresh.keys);
    const keys = serving.fresh?.keys ?? null;
    if (options.output === 'json') {
      const mark = brokenMark(serving.facts.rules);
      io.out(`${JSON.stringify(startJson(serving.facts, config, options))}\n`);
      if (file !== null) io.err(`${mark}keys of the tenants: ${file.path}\n`);
    } else {
      io.out(startLines(serving.facts, { keys: showsKeys ? keys : null, keysFile: file?.path ?? null }));
    }
    const signal = await ended;
    if (options.output !== 'json') io.out(`\n${signal}: open requests end, then the server does.\n`);
    // First: a second signal ends it at once, and nothing is to be left then.
    file?.remove();
    reloads?.stop();
    const { drainMs } = reloads?.reloader.loaded.options.bounds ?? options.bounds;
    // Who presses Ctrl-C waits for it.
    await serving.drain(signal === 'SIGTERM' ? drainMs : Math.min(drainMs, CLOSE_GRACE_MS));
  } finally {
    reloads?.stop();
    file?.remove();
    isWhole = await serving.close();
  }
  return isWhole ? EXIT.clean : EXIT.unchecked;
}

/** One of several processes: the parent tells what is served, and when it ends. */
export async function runWorker(options: ServeOptions, config: ServeConfig | null, io: CliIo): Promise<number> {
  const line = new WorkerLine();
  try {
    const { index, secret } = await line.task;
    const serving = await startServing(workerOptions(options, index, secret), (text) => io.err(text));
    const reloads = config === null ? null : startReloads(serving, config, io);
    line.onHangUp = () => void reloads?.reloader.reload('SIGHUP');
    line.serving(serving.facts);
    const signal = await line.ended;
    reloads?.stop();
    const { drainMs } = reloads?.reloader.loaded.options.bounds ?? options.bounds;
    await serving.drain(signal === 'SIGTERM' ? drainMs : Math.min(drainMs, CLOSE_GRACE_MS));
    return (await serving.close()) ? EXIT.clean : EXIT.unchecked;
  } finally {
    line.close();
  }
}

/** With everything on there is no `unsafe`; with a fault on or a guard off the line says so, as every line does. */
function startJson(facts: StartFacts, config: ServeConfig | null, options: ServeOptions): unknown {
  const { rules, engines, ...shown } = facts;
  const mark = brokenMark(rules);
  return {
    ...shown,
    ...(engines.length === 0 ? {} : { engines }),
    ...(config === null ? {} : { config: { path: config.loaded.file.path, fingerprint: configFingerprint(options) } }),
    ...(mark === '' ? {} : { unsafe: mark.trim() }),
  };
}

interface Reloads {
  readonly reloader: ConfigReloader;
  stop(): void;
}

/** Reads the file again when it, or a file with a key, has changed. */
function startReloads(serving: Serving, config: ServeConfig, io: CliIo): Reloads {
  const reloader = new ConfigReloader(
    {
      flags: config.flags,
      load: config.load,
      apply: (options) => serving.reconfigure(options),
      log: (line) => io.err(`${escapeControl(line)}\n`),
      findings: serving.findings,
      registry: serving.metrics.registry,
    },
    config.loaded,
  );
  const watch = new FileWatch({
    clock: new SystemClock(),
    paths: () => reloader.files.map((path) => resolve(path)),
    changed: () => void reloader.reload('change'),
  });
  return { reloader, stop: () => watch.stop() };
}

const STANDARD_INPUT = 0;

function hangUps(reloads: Reloads | null, io: CliIo): () => HangUp {
  const wasTerminal = isatty(STANDARD_INPUT);
  return () => {
    const meaning = hangUpMeaning(wasTerminal, () => isatty(STANDARD_INPUT));
    if (meaning === 'end') return meaning;
    if (reloads === null)
      io.err('SIGHUP: no configuration file was read at the start, so there is nothing to reload\n');
    else reloads.reloader.reload('SIGHUP');
    return meaning;
  };
}
