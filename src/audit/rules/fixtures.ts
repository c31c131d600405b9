/** Small builders of facts for tests: everything that is not said is not known, except where the defaults below say so. */
import type { EngineName, KvTransferConfig, LogSign } from '../../upstream/reading.js';
import type { NodeRole } from '../../upstream/upstream.js';
import { parseVersion } from '../../upstream/version.js';
import type { Exposure, PolicyFact, PortFact, ServiceFact } from '../exposure.js';
import type { FlagFact, Fleet, NodeFacts, Said, Source } from '../facts.js';

export interface NodeSpec {
  readonly name?: string;
  /** @default sglang; null: nothing names it */
  readonly engine?: EngineName | null;
  /** @default single */
  readonly role?: NodeRole;
  readonly version?: string;
  readonly model?: string;
  readonly arch?: string;
  /** `host:port` */
  readonly listens?: string;
  /** Tokens. */
  readonly context?: number;
  /** Tokens; a list: one a rank. */
  readonly pool?: number | readonly number[];
  readonly poolCap?: number;
  readonly poolSwa?: number;
  /** Largest prompt served. */
  readonly limit?: number;
  readonly page?: number;
  readonly slots?: readonly [count: number, contextEach: number, unified: boolean | null];
  readonly trained?: number;
  /** By name (null: the running engine resolved it to nothing); with it, every other flag has its default unless `partFlags`. */
  readonly flags?: Readonly<Record<string, string | null>>;
  readonly partFlags?: boolean;
  /** By name; with it, every other variable is unset unless `partVars`. */
  readonly vars?: Readonly<Record<string, string | null>>;
  readonly partVars?: boolean;
  readonly signs?: readonly LogSign[];
  readonly log?: boolean;
  /** `name{label="value"}` to its value. */
  readonly metrics?: Readonly<Record<string, number>>;
  readonly keysShown?: readonly string[];
  readonly transfer?: Partial<KvTransferConfig> & { readonly connector: string };
  /** Path to the status without a key, as asked live. */
  readonly routes?: Readonly<Record<string, number>>;
  readonly anyOrigin?: boolean;
  readonly exposure?: Exposure;
}

export const at = (kind: Source['kind'], name: string): Source => ({ kind, name });
const COMMAND = at('command', '--command');
const LOG = at('log', 'node.log');
const MANIFEST = at('manifest', 'node.yaml');

const said = <T>(value: T | undefined, source: Source): Said<T> => (value === undefined ? [] : [{ value, source }]);

export function fleet(...specs: readonly NodeSpec[]): Fleet {
  return {
    nodes: specs.map((spec, index) => node({ name: `node-${index}`, ...spec })),
    skipped: [],
    disagreements: [],
  };
}

export function node(spec: NodeSpec = {}): NodeFacts {
  const answer = at('answer', '/server_info');
  const { listens } = spec;
  const colon = listens?.lastIndexOf(':') ?? 0;
  const address =
    listens === undefined ? undefined : { host: listens.slice(0, colon), port: Number(listens.slice(colon + 1)) };
  const pools = spec.pool === undefined ? [] : typeof spec.pool === 'number' ? [spec.pool] : spec.pool;
  const slots =
    spec.slots === undefined ? undefined : { count: spec.slots[0], contextEach: spec.slots[1], unified: spec.slots[2] };
  return {
    name: spec.name ?? 'node',
    engine: spec.engine === undefined ? 'sglang' : spec.engine,
    role: spec.role ?? 'single',
    sources: [answer],
    version: spec.version === undefined ? null : parseVersion(spec.version),
    versions: said(spec.version, answer),
    roles: said(spec.role, answer),
    models: said(spec.model, answer),
    architectures: said(spec.arch, answer),
    listens: said(address, answer),
    advertised: said(spec.context, answer),
    pool: pools.map((tokens, rank) => ({
      value: { tokens, rank: typeof spec.pool === 'number' ? null : String(rank), estimate: false },
      source: answer,
    })),
    poolCap: said(spec.poolCap, COMMAND),
    poolSwa: said(
      spec.poolSwa === undefined ? undefined : { tokens: spec.poolSwa, rank: null, estimate: false },
      answer,
    ),
    poolUnsaid: [],
    acceptLimit: said(spec.limit, answer),
    pageTokens: said(spec.page, answer),
    slots: said(slots, answer),
    contextTrained: said(spec.trained, answer),
    concurrency: [],
    flags: new Map(
      Object.entries(spec.flags ?? {}).map(([name, value]) => [
        name,
        said<FlagFact>({ value, form: value === null ? 'resolved' : 'given' }, COMMAND),
      ]),
    ),
    flagsComplete: spec.flags === undefined || spec.partFlags === true ? [] : [COMMAND],
    variables: new Map(Object.entries(spec.vars ?? {}).map(([name, value]) => [name, said(value, MANIFEST)])),
    variablesComplete: spec.vars === undefined || spec.partVars === true ? [] : said('', MANIFEST),
    signs: (spec.signs ?? []).map((sign) => ({ sign, count: 1, source: LOG })),
    logRead: spec.log === true || spec.signs !== undefined,
    samples: Object.entries(spec.metrics ?? {}).map(([key, value]) => sampleOf(key, value)),
    metricsRead: spec.metrics !== undefined,
    keysShown: (spec.keysShown ?? []).map((field) => ({ value: field, source: answer })),
    transferConfigs: said(spec.transfer === undefined ? undefined : transferConfig(spec.transfer), COMMAND),
    routes: new Set(),
    endpoint: endpointOf(spec),
    exposure: spec.exposure ?? null,
  };
}

function transferConfig(given: NonNullable<NodeSpec['transfer']>): KvTransferConfig {
  return { role: null, loadFailurePolicy: null, ip: null, port: null, extra: {}, inner: [], ...given };
}

function sampleOf(key: string, value: number): NodeFacts['samples'][number] {
  const brace = key.indexOf('{');
  const labels = [...key.matchAll(/(\w+)="([^"]*)"/g)].map((match) => [match[1]!, match[2]!] as const);
  return {
    name: brace < 0 ? key : key.slice(0, brace),
    labels: Object.fromEntries(labels),
    value,
    source: at('metrics', '/metrics'),
  };
}

function endpointOf({ routes, anyOrigin }: NodeSpec): NodeFacts['endpoint'] {
  if (routes === undefined) return null;
  return {
    origin: 'http://10.0.0.1:30000',
    answered: true,
    failure: null,
    routes: Object.entries(routes).map(([path, statusOpen]) => ({ path, statusOpen, statusKeyed: null })),
    anyOrigin: anyOrigin ?? false,
  };
}

/** A workload of a cluster; without more, every pod may connect to it. */
export function workload(parts: {
  readonly services?: readonly Partial<ServiceFact>[];
  readonly policies?: readonly PolicyFact[];
  readonly ports?: readonly Partial<PortFact>[];
  readonly hostNetwork?: boolean;
}): Exposure {
  return {
    workload: 'Deployment/node',
    namespace: null,
    replicas: 1,
    image: null,
    ports: (parts.ports ?? []).map((port) => ({
      number: 30000,
      name: null,
      hostPort: false,
      source: MANIFEST,
      ...port,
    })),
    hostNetwork: parts.hostNetwork === undefined ? null : { value: parts.hostNetwork, source: MANIFEST },
    services: (parts.services ?? []).map((service) => ({
      name: 'node',
      type: 'cluster',
      ports: null,
      loopback: false,
      outside: false,
      source: MANIFEST,
      ...service,
    })),
    policies: parts.policies ?? [],
    source: MANIFEST,
  };
}

/** Reachable from beyond the cluster. */
export const OUTSIDE: Exposure = workload({ services: [{ type: 'load-balancer' }] });
/** Reachable by every pod. */
export const CLUSTER: Exposure = workload({ services: [{}] });
/** Reachable by those that a policy names, on every port. */
export const POLICY: Exposure = workload({
  services: [{}],
  policies: [{ name: 'peers', rules: [{ ports: null, fromAnyone: false }], source: MANIFEST }],
});
