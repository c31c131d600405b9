/** From flags to options: every flag is checked here, by pure functions, and nothing behind them meets a raw text. */
import { CodedError } from '../base/errors.js';
import { isLoopback } from '../base/loopback.js';
import { shown } from '../base/text.js';
import { isPowerOfTwo, parseCount } from '../base/units.js';
import type { Severity } from '../findings/finding.js';
import { CLOSE_GRACE_MS, TENANT_OPEN_MAX, WAIT_MS_MAX, WAITING_MAX } from '../gateway/bounds.js';
import { GUARDS, type GuardName, isGuardName } from '../handoff/guards.js';
import { BODY_BYTES_MAX } from '../wire/index.js';
import * as defaults from './defaults.js';
import type { EngineFlags, FaultFlags, ReplayFlags, ServeFlags, SizeFlags } from './flags.js';
import { type KeyOption, type KeySurroundings, parseKey, parseTenants, type TenantOption } from './keys.js';
import { checkWorkers } from './workers-options.js';
import { DEFAULT_RUNNING, parseRunning, type RunningOptions } from './running-options.js';
import { parseUpstreams, type UpstreamOption, upstreamWarnings } from './upstream-options.js';

export type OutputFormat = 'table' | 'json';

/** Tokens, but for `runningMax` (requests) and what is switched. */
export interface SizeOptions {
  readonly context: number;
  readonly prefillPool: number;
  /** False: the default, which a fault may lower. */
  readonly prefillPoolGiven: boolean;
  readonly decodePool: number;
  readonly pageTokens: number;
  readonly runningMax: number;
  readonly prefixCache: boolean;
  readonly zeroOnRelease: boolean;
}

export interface FaultOptions {
  /** Names that the caller knows, each once. */
  readonly faults: readonly string[];
  /** Null: not said; then each fault turns off the guards that stop it. */
  readonly guards: 'on' | 'off' | null;
  /** Turned off by name, each once, in the order of `GUARDS`. */
  readonly guardsOff: readonly GuardName[];
  readonly seed: number;
}

export interface ServeOptions {
  readonly host: string;
  readonly port: number;
  readonly opsPort: number;
  readonly opsKey: KeyOption | null;
  /** Empty: the start makes tenants with fresh keys. */
  readonly tenants: readonly TenantOption[];
  readonly sizes: SizeOptions;
  readonly onSmallPool: 'lower' | 'refuse';
  readonly output: OutputFormat;
  /** Where the engine's trace goes; null: nowhere. */
  readonly trace: string | null;
  readonly broken: FaultOptions;
  readonly bounds: BoundOptions;
  /** Engines that are there; empty: the embedded one. */
  readonly upstreams: readonly UpstreamOption[];
  readonly running: RunningOptions;
  /** To be shown at the start: what is allowed, but not wise. */
  readonly warnings: readonly string[];
}

/** What only a configuration file says. */
export interface BoundOptions {
  /** Further names for `Host`. */
  readonly hostNames: readonly string[];
  readonly tenantOpenMax: number;
  readonly waitingMax: number;
  readonly waitMsMax: number;
  readonly bodyBytesMax: number;
  /** How long open requests may go on when SIGTERM asks for the end. */
  readonly drainMs: number;
  /** The least severity of findings that are written to standard error. */
  readonly findingsLog: Severity | 'none';
}

/** A configuration file, laid out as flags are. */
export interface FileOptions {
  readonly flags: ServeFlags;
  readonly tenants: readonly TenantOption[];
  readonly opsKey: KeyOption | null;
  readonly bounds: BoundOptions;
  readonly upstreams: readonly UpstreamOption[];
  readonly running: RunningOptions;
}

export interface EngineOptions {
  readonly host: string;
  readonly listeners:
    | { readonly kind: 'single'; readonly port: number }
    | { readonly kind: 'pair'; readonly prefillPort: number; readonly decodePort: number };
  readonly sizes: SizeOptions;
  readonly output: OutputFormat;
  /** Where the engine's trace goes; null: nowhere. */
  readonly trace: string | null;
  readonly broken: FaultOptions;
  readonly warnings: readonly string[];
}

export interface ReplayOptions {
  readonly what:
    | { readonly kind: 'list' | 'matrix' | 'full-matrix' }
    | { readonly kind: 'fault'; readonly fault: string }
    /** A counterexample of `verify`. */
    | { readonly kind: 'trace'; readonly path: string };
  readonly guards: 'on' | 'off' | null;
  readonly guardsOff: readonly GuardName[];
  readonly output: OutputFormat;
  readonly seed: number;
}

/** What the parsers may know of the world. */
export interface OptionWorld {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The names of all faults. */
  readonly faultNames: readonly string[];
}

function wrong(flag: string, wanted: string, got: unknown): CodedError {
  return new CodedError('usage', `Expected \`${flag}\` to be ${wanted}, got ${shown(got)}`);
}

/** A count within bounds; `fallback` where the flag was not given. Throws CodedError `usage`. */
export function count(flag: string, text: string | undefined, fallback: number, min: number, max: number): number {
  if (text === undefined) return fallback;
  const value = parseCount(text);
  if (value === null || value < min || value > max) throw wrong(flag, `a whole number from ${min} to ${max}`, text);
  return value;
}

/** 0 lets the system choose. */
function port(flag: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65535) throw wrong(flag, 'a port from 0 to 65535', text);
  return Number(text);
}

/** One of some words; `fallback` where the flag was not given. Throws CodedError `usage`. */
export function choice<T extends string>(
  flag: string,
  text: string | undefined,
  choices: readonly T[],
  fallback: T,
): T {
  if (text === undefined) return fallback;
  const found = choices.find((name) => name === text);
  if (found === undefined) throw wrong(flag, choices.map((name) => `\`${name}\``).join(' or '), text);
  return found;
}

function host(text: string | undefined): string {
  if (text === undefined) return defaults.DEFAULT_HOST;
  if (!/^[A-Za-z0-9.:_[\]%-]{1,255}$/.test(text)) throw wrong('--host', 'an address or a name', text);
  return text.replace(/^\[(.*)\]$/, '$1');
}

export function parseSizes(flags: SizeFlags): SizeOptions {
  const { PAGE_TOKENS_MIN: pageMin, PAGE_TOKENS_MAX: pageMax, POOL_TOKENS_MAX: poolMax } = defaults;
  const pageTokens = flags.pageSize === undefined ? defaults.DEFAULT_PAGE_TOKENS : parseCount(flags.pageSize);
  if (pageTokens === null || !isPowerOfTwo(pageTokens) || pageTokens < pageMin || pageTokens > pageMax) {
    throw wrong('--page-size', `a power of two from ${pageMin} to ${pageMax}`, flags.pageSize);
  }
  const { CONTEXT_TOKENS_MIN: contextMin, CONTEXT_TOKENS_MAX: contextMax } = defaults;
  const pool = (flag: string, text: string | undefined, fallback: number): number =>
    count(flag, text, fallback, pageTokens, poolMax);
  return {
    context: count('--context', flags.context, defaults.DEFAULT_CONTEXT_TOKENS, contextMin, contextMax),
    prefillPool: pool('--prefill-pool', flags.prefillPool, defaults.DEFAULT_PREFILL_POOL_TOKENS),
    prefillPoolGiven: flags.prefillPool !== undefined,
    decodePool: pool('--decode-pool', flags.decodePool, defaults.DEFAULT_DECODE_POOL_TOKENS),
    pageTokens,
    runningMax: count('--max-running', flags.maxRunning, defaults.DEFAULT_RUNNING_MAX, 1, defaults.RUNNING_MAX_MAX),
    prefixCache: flags.prefixCache ?? true,
    zeroOnRelease: flags.zeroOnRelease ?? false,
  };
}

function seed(text: string | undefined): number {
  return count('--seed', text, defaults.DEFAULT_SEED, 0, defaults.SEED_MAX);
}

function guardsOff(names: readonly string[]): GuardName[] {
  for (const name of names) {
    if (!isGuardName(name)) throw wrong('--guard-off', `one of ${GUARDS.join(', ')}`, name);
  }
  return GUARDS.filter((guard) => names.includes(guard));
}

function guards(text: string | undefined): 'on' | 'off' | null {
  return text === undefined ? null : choice<'on' | 'off'>('--guards', text, ['on', 'off'], 'on');
}

function faultName(flag: string, name: string, world: OptionWorld): string {
  if (world.faultNames.includes(name)) return name;
  throw wrong(flag, 'a fault that `cofferdam replay --list` names', name);
}

function parseBroken(flags: FaultFlags, loopback: boolean, world: OptionWorld): FaultOptions {
  const broken: FaultOptions = {
    faults: [...new Set((flags.fault ?? []).map((name) => faultName('--fault', name, world)))],
    guards: guards(flags.guards),
    guardsOff: guardsOff(flags.guardOff ?? []),
    seed: seed(flags.seed),
  };
  if (isBroken(broken) && !loopback) {
    throw new CodedError(
      'usage',
      'Expected `--host` to be a loopback address with faults on or guards off, got another',
    );
  }
  return broken;
}

/** Whether anything that protects tenants is switched off, or anything harmful on. */
export function isBroken(options: FaultOptions): boolean {
  return options.faults.length > 0 || options.guards === 'off' || options.guardsOff.length > 0;
}

const BROKEN_WARNING = 'faults are on or guards are off: tenants are NOT kept apart';

const CLEAR_WARNING =
  'both ports speak http beyond loopback, keys and prompts in clear: name `--tls-cert` and `--tls-key`, or put what ends TLS in front';

/** What holds where there is no configuration file. */
const DEFAULT_BOUNDS: BoundOptions = {
  hostNames: [],
  tenantOpenMax: TENANT_OPEN_MAX,
  waitingMax: WAITING_MAX,
  waitMsMax: WAIT_MS_MAX,
  bodyBytesMax: BODY_BYTES_MAX,
  drainMs: CLOSE_GRACE_MS,
  findingsLog: 'none',
};

/** A flag overrides what `file` says. Throws CodedError `usage`. */
export function parseServeOptions(given: ServeFlags, world: OptionWorld, file?: FileOptions): ServeOptions {
  const flags = file === undefined ? given : overlay(file.flags, given);
  const listen = host(flags.host);
  const loopback = isLoopback(listen);
  const surroundings: KeySurroundings = { variables: world.variables, loopback };
  const named = flags.tenant === undefined ? file?.tenants : undefined;
  const tenants = named ?? parseTenants(flags.tenant ?? [], surroundings);
  const opsKey =
    flags.opsKey === undefined ? (file?.opsKey ?? null) : parseKey(flags.opsKey, '--ops-key', surroundings);
  if (opsKey === null && !loopback) {
    throw new CodedError('usage', 'Expected `--ops-key` when the operators’ port is beyond loopback, got nothing');
  }
  const options = {
    host: listen,
    port: port('--port', flags.port, defaults.DEFAULT_PORT),
    opsPort: port('--ops-port', flags.opsPort, defaults.DEFAULT_OPS_PORT),
    opsKey,
    tenants,
    sizes: parseSizes(flags),
    onSmallPool: choice('--on-small-pool', flags.onSmallPool, ['lower', 'refuse'], 'lower'),
    output: choice('--output', flags.output, ['table', 'json'], 'table'),
    trace: flags.trace ?? null,
    broken: parseBroken(flags, loopback, world),
    bounds: file?.bounds ?? DEFAULT_BOUNDS,
    upstreams: parseUpstreams(given, file?.upstreams ?? [], world.variables),
    running: parseRunning(given, file?.running ?? DEFAULT_RUNNING, world.variables),
  };
  if (options.upstreams.length > 0 && options.broken.faults.length > 0) {
    throw new CodedError(
      'usage',
      'Expected faults with the embedded engine only, got them with engines that are there',
    );
  }
  differ('--port', options.port, '--ops-port', options.opsPort);
  checkWorkers(options);
  return {
    ...options,
    warnings: [
      ...serveWarnings(tenants, opsKey, options.broken),
      ...(loopback || options.running.tls !== null ? [] : [CLEAR_WARNING]),
      ...upstreamWarnings(options.upstreams),
    ],
  };
}

/** The parser of the command line says `true` for a switch that `--no-…` turns off, whether or not it was given. */
function overlay(file: ServeFlags, given: ServeFlags): ServeFlags {
  const { prefixCache, ...others } = given;
  const said = Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined));
  return { ...file, ...said, ...(prefixCache === false ? { prefixCache } : {}) };
}

function serveWarnings(tenants: readonly TenantOption[], opsKey: KeyOption | null, broken: FaultOptions): string[] {
  const warnings = isBroken(broken) ? [BROKEN_WARNING] : [];
  const literal = tenants
    .filter(({ keys }) => keys.some(({ from }) => from === 'literal'))
    .map(({ name }) => `--tenant ${name}=…`);
  if (opsKey?.from === 'literal') literal.push('--ops-key');
  if (literal.length > 0) {
    const flags = literal.map((flag) => `\`${flag}\``).join(', ');
    warnings.push(`the key in ${flags} can be read in the list of processes; \`env:VAR\` or \`sha256:HEX\` cannot`);
  }
  return warnings;
}

function differ(oneFlag: string, one: number, otherFlag: string, other: number): void {
  if (one === other && one !== 0) throw wrong(oneFlag, `another port than \`${otherFlag}\``, one);
}

export function parseEngineOptions(flags: EngineFlags, world: OptionWorld): EngineOptions {
  const listen = host(flags.host);
  const loopback = isLoopback(listen);
  const broken = parseBroken(flags, loopback, world);
  const warnings = isBroken(broken) ? [BROKEN_WARNING] : [];
  if (!loopback) warnings.push('an engine asks for no key: whoever reaches its port can use it');
  return {
    host: listen,
    listeners: parseListeners(flags),
    sizes: parseSizes(flags),
    output: choice('--output', flags.output, ['table', 'json'], 'table'),
    trace: flags.trace ?? null,
    broken,
    warnings,
  };
}

function parseListeners(flags: EngineFlags): EngineOptions['listeners'] {
  if (flags.prefillPort === undefined && flags.decodePort === undefined) {
    return { kind: 'single', port: port('--port', flags.port, defaults.DEFAULT_ENGINE_PORT) };
  }
  if (flags.port !== undefined) {
    throw new CodedError('usage', 'Expected `--port`, or `--prefill-port` with `--decode-port`, got both');
  }
  if (flags.prefillPort === undefined || flags.decodePort === undefined) {
    const missing = flags.prefillPort === undefined ? '--prefill-port' : '--decode-port';
    throw new CodedError('usage', `Expected \`--prefill-port\` and \`--decode-port\` together, got no \`${missing}\``);
  }
  const prefillPort = port('--prefill-port', flags.prefillPort, 0);
  const decodePort = port('--decode-port', flags.decodePort, 0);
  differ('--prefill-port', prefillPort, '--decode-port', decodePort);
  return { kind: 'pair', prefillPort, decodePort };
}

function replayedFault(name: string, world: OptionWorld): string {
  if (world.faultNames.includes(name)) return name;
  throw wrong('FAULT', `one of ${world.faultNames.join(', ')}`, name);
}

export function parseReplayOptions(fault: string | undefined, flags: ReplayFlags, world: OptionWorld): ReplayOptions {
  const { trace } = flags;
  const isTrace = trace !== undefined;
  const asked = [fault !== undefined, flags.list === true, flags.matrix === true, isTrace].filter(Boolean).length;
  if (asked !== 1) {
    const got = asked === 0 ? 'none of them' : `${asked} of them`;
    throw new CodedError('usage', `Expected one of FAULT, \`--list\`, \`--matrix\` and \`--trace\`, got ${got}`);
  }
  const off = guardsOff(flags.guardOff ?? []);
  if (fault === undefined && !isTrace && (flags.guards !== undefined || off.length > 0)) {
    throw new CodedError('usage', 'Expected `--guards` and `--guard-off` with a FAULT or a trace, got neither');
  }
  if (flags.full === true && flags.matrix !== true) {
    throw new CodedError('usage', 'Expected `--full` with `--matrix`, got it alone');
  }
  return {
    what: replayed(fault, flags, world),
    guards: guards(flags.guards),
    guardsOff: off,
    output: choice('--output', flags.output, ['table', 'json'], 'table'),
    seed: seed(flags.seed),
  };
}

function replayed(fault: string | undefined, flags: ReplayFlags, world: OptionWorld): ReplayOptions['what'] {
  if (flags.trace !== undefined) return { kind: 'trace', path: flags.trace };
  if (fault !== undefined) return { kind: 'fault', fault: replayedFault(fault, world) };
  return { kind: flags.list === true ? 'list' : flags.full === true ? 'full-matrix' : 'matrix' };
}
