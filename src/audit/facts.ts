/** What the audit knows, each value with where it was read. Rules are pure functions over these and see nothing else. */
import type { EngineName, FlagForm, KvTransferConfig, LogSign } from '../upstream/reading.js';
import type { NodeRole } from '../upstream/upstream.js';
import type { Version } from '../upstream/version.js';

/** Best first: where two sources disagree, the earlier one is shown, and the disagreement is a finding. */
export const SOURCE_KINDS = [
  /** `GET /server_info`, `/props`, …: asked of the running node, or saved from it. */
  'answer',
  /** Prometheus text. */
  'metrics',
  /** A startup log. */
  'log',
  /** `--pool`, `--advertised`: what only a person knows. */
  'person',
  'command',
  'manifest',
  /** A list of variables, such as `/proc/PID/environ`. */
  'environment',
] as const;

export type SourceKind = (typeof SOURCE_KINDS)[number];

/** Where something was read. `name`: a route of a node, or a file below the folder that was given. */
export interface Source {
  readonly kind: SourceKind;
  readonly name: string;
  readonly line?: number;
}

export interface Sourced<T> {
  readonly value: T;
  readonly source: Source;
}

/** Everything that was said about one thing, best source first. Empty: nobody said anything. */
export type Said<T> = readonly Sourced<T>[];

export interface PoolFact {
  /** What one request can fill at most: with data parallelism a request lives on one rank. */
  readonly tokens: number;
  /** The rank that said it; null: said for the node. */
  readonly rank: string | null;
  /** A figure that the engine prints for people and that depends on the model's layout. */
  readonly estimate: boolean;
}

export interface SlotsFact {
  readonly count: number;
  readonly contextEach: number | null;
  readonly unified: boolean | null;
}

export interface FlagFact {
  /** `true`, `false`, a number, a word, JSON, several values parted by blanks; a key is `SECRET`; null: resolved to nothing. */
  readonly value: string | null;
  readonly form: FlagForm;
}

export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly source: Source;
}

export interface SignSeen {
  readonly sign: LogSign;
  readonly count: number;
  /** The first time. */
  readonly source: Source;
}

/** One route that was asked, live, with GET. */
export interface RouteAnswer {
  readonly path: string;
  /** Without any key; null: no answer. */
  readonly statusOpen: number | null;
  /** With the key that was given for this origin; null: none was given, or none was needed. */
  readonly statusKeyed: number | null;
}

/** What asking a node gave, beyond its figures. Null on a node that was not asked. */
export interface Endpoint {
  /** `http://host:port`. */
  readonly origin: string;
  readonly answered: boolean;
  /** Why not, in words; null when it answered. */
  readonly failure: string | null;
  readonly routes: readonly RouteAnswer[];
  /** True: any site's page may read the answers (`access-control-allow-origin: *`). */
  readonly anyOrigin: boolean;
}

export interface PortFact {
  readonly number: number;
  readonly name: string | null;
  /** True: opened on the machine itself. */
  readonly hostPort: boolean;
  readonly source: Source;
}

/** A Service (or a Compose `ports:` entry) that leads to the node. */
export interface ServiceFact {
  readonly name: string;
  readonly type: 'cluster' | 'node-port' | 'load-balancer' | 'published';
  /** Ports of the node that it leads to; null: every one (a headless Service without ports). */
  readonly ports: readonly number[] | null;
  /** Published on the loopback address only. */
  readonly loopback: boolean;
  /** An Ingress, HTTPRoute or similar leads to this Service from outside. */
  readonly outside: boolean;
  readonly source: Source;
}

/** A NetworkPolicy that selects the node and governs what comes in. */
export interface PolicyFact {
  readonly name: string;
  /** Each rule: ports (null: all) and whether it lets in everybody, or only those it names; none: nothing comes in. */
  readonly rules: readonly { readonly ports: readonly number[] | null; readonly fromAnyone: boolean }[];
  readonly source: Source;
}

export interface Exposure {
  /** `Deployment/prefill`. */
  readonly workload: string;
  readonly namespace: string | null;
  readonly replicas: number | null;
  readonly image: Sourced<string> | null;
  readonly ports: readonly PortFact[];
  readonly hostNetwork: Sourced<boolean> | null;
  readonly services: readonly ServiceFact[];
  readonly policies: readonly PolicyFact[];
  /** Where the workload itself stands. */
  readonly source: Source;
}

/** Everything known about one node. */
export interface NodeFacts {
  readonly name: string;
  /** Null: nothing that was read names one. */
  readonly engine: EngineName | null;
  readonly role: NodeRole;
  /** Every artifact that spoke of this node. */
  readonly sources: readonly Source[];
  /** The best of `versions` that parses; null: no version is known. */
  readonly version: Version | null;
  readonly versions: Said<string>;
  readonly roles: Said<NodeRole>;
  readonly models: Said<string>;
  readonly architectures: Said<string>;
  /** `host:port` pairs that it listens on. */
  readonly listens: Said<{ readonly host: string; readonly port: number }>;
  readonly advertised: Said<number>;
  /** Per rank where ranks spoke. `poolOf(node)` gives the one that counts. */
  readonly pool: Said<PoolFact>;
  /** Flags that bound the pool from above. */
  readonly poolCap: Said<number>;
  readonly poolSwa: Said<PoolFact>;
  /** The node spoke of its pool, but without a figure. */
  readonly poolUnsaid: Said<string>;
  /** The largest prompt served, in tokens: as the node says it, or as its version computes it from context and pool. */
  readonly acceptLimit: Said<number>;
  readonly pageTokens: Said<number>;
  readonly slots: Said<SlotsFact>;
  readonly contextTrained: Said<number>;
  /** Requests of full length that fit at once. */
  readonly concurrency: Said<number>;
  /** By canonical name without dashes in front (`context-length`). Use `flagOf`. */
  readonly flags: ReadonlyMap<string, Said<FlagFact>>;
  /** Sources that hold every flag, so that one not named has its default. */
  readonly flagsComplete: readonly Source[];
  /** Null: set, to a value not known here (a Secret, a ConfigMap, a key). Use `variableOf`. */
  readonly variables: ReadonlyMap<string, Said<string | null>>;
  /** Sources that hold every variable whose name begins with the value (`''`: every one). */
  readonly variablesComplete: Said<string>;
  readonly signs: readonly SignSeen[];
  /** Whether a log was read at all: without one, no sign says nothing. */
  readonly logRead: boolean;
  readonly samples: readonly MetricSample[];
  readonly metricsRead: boolean;
  /** Fields of answers that show a key in clear. */
  readonly keysShown: Said<string>;
  readonly transferConfigs: Said<KvTransferConfig>;
  /** Routes that it says it serves (vLLM's log). */
  readonly routes: ReadonlySet<string>;
  readonly endpoint: Endpoint | null;
  /** Null: no manifest spoke of it. */
  readonly exposure: Exposure | null;
}

export interface Skipped {
  readonly name: string;
  readonly why: string;
}

/** Two sources gave different values for one thing. */
export interface Disagreement {
  readonly node: string;
  readonly what: string;
  readonly one: Sourced<string>;
  readonly other: Sourced<string>;
}

/** All that was gathered. */
export interface Fleet {
  readonly nodes: readonly NodeFacts[];
  readonly skipped: readonly Skipped[];
  readonly disagreements: readonly Disagreement[];
}
