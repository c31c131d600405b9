/** What a configuration file says of engines and of how the server runs, as the options that flags would have set. */
import { dirname, resolve } from 'node:path';
import { isLoopback } from '../base/loopback.js';
import { shown } from '../base/text.js';
import type { Mistake, Place } from '../config/mistake.js';
import { MARKERS_GIVEN_MAX } from '../gateway/bounds.js';
import { MARKER_SECRET_BYTES_MIN } from '../markers/marker.js';
import { DEFAULT_MARKERS_PER_TENANT, type FileMarkers, type MarkerOptions } from './config-markers.js';
import type { FileValues } from './config-shape.js';
import type { FileNode, FileUpstream } from './config-upstreams.js';
import * as defaults from './defaults.js';
import type { RunningOptions } from './running-options.js';
import { findSecret, type SecretText } from './secret-text.js';
import {
  type EngineKind,
  type NodeOption,
  parseEngineUrl,
  type Requirement,
  twiceNamed,
  type UpstreamOption,
} from './upstream-options.js';
import { USAGE_KEEP, USAGE_ROTATE_BYTES } from './usage-log.js';

export interface FoundEngines {
  /** Empty: the embedded engine. */
  readonly upstreams: readonly UpstreamOption[];
  readonly running: RunningOptions;
  /** Files that hold secrets, absolute. */
  readonly files: readonly string[];
  readonly mistakes: readonly Mistake[];
}

export interface EngineWorld {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Of the configuration file: paths begin in its folder. */
  readonly path: string;
}

/** Never throws; what is wrong is among the mistakes. */
export function findEngines(values: FileValues, places: ReadonlyMap<string, Place>, world: EngineWorld): FoundEngines {
  const finder = new EngineFinder(places, world);
  const upstreams = finder.upstreams(values.upstreams ?? []);
  return { upstreams, running: finder.running(values), files: finder.files, mistakes: finder.mistakes };
}

class EngineFinder {
  readonly files: string[] = [];
  readonly mistakes: Mistake[] = [];
  readonly #places: ReadonlyMap<string, Place>;
  readonly #world: EngineWorld;

  constructor(places: ReadonlyMap<string, Place>, world: EngineWorld) {
    this.#places = places;
    this.#world = world;
  }

  upstreams(rows: readonly (FileUpstream | undefined)[]): UpstreamOption[] {
    const engines = rows.filter((row) => row?.kind !== undefined && row.kind !== 'embedded');
    const embedded = rows.findIndex((row) => row?.kind === 'embedded');
    if (embedded >= 0 && rows.length > 1) {
      this.#wrong(
        `upstreams[${embedded}]`,
        'the embedded engine alone, or engines that are there',
        'both, or it twice',
        'Take one of them out.',
      );
      return [];
    }
    const found = rows.flatMap((row, index) =>
      row !== undefined && engines.includes(row) ? [this.#upstream(row, `upstreams[${index}]`)] : [],
    );
    const twice = twiceNamed(found);
    if (twice !== null) this.#wrong('upstreams', 'each address once', `${shown(twice)} again`, 'Take one of them out.');
    return found;
  }

  #upstream(row: FileUpstream, path: string): UpstreamOption {
    const nodes = this.#nodes(row, path);
    const insecure = row.insecure ?? false;
    if (insecure && nodes.some(({ url }) => !isLoopback(url.hostname))) {
      const change = 'Name the authority of its certificate with `ca`.';
      this.#wrong(`${path}.insecure`, 'certificates to be checked of what is beyond loopback', '`true`', change);
    }
    if (row.kind === 'openai' && row.context === undefined && !this.#places.has(`${path}.context`)) {
      const change = 'Such an endpoint does not say what it holds: write down the least that it does.';
      this.#wrong(path, `\`${path}.context\` for the kind \`openai\``, 'nothing', change);
    }
    return {
      kind: row.kind as EngineKind,
      nodes,
      key: row.key === undefined ? null : this.#secret(row.key, `${path}.key`),
      tokenizer: this.#path(row.tokenizer),
      model: row.model ?? null,
      context: row.context ?? null,
      pool: row.pool ?? null,
      runningMax: row['max-running'] ?? null,
      firstByteMsMax: row['first-byte'] ?? defaults.FIRST_BYTE_MS_MAX,
      idleMsMax: row.idle ?? defaults.IDLE_MS_MAX,
      require: (row.require ?? []) as readonly Requirement[],
      layout: (row.layout ?? 'unknown') as UpstreamOption['layout'],
      dataParts: row['data-parts'] ?? false,
      ca: this.#path(row.ca),
      insecure,
    };
  }

  #nodes(row: FileUpstream, path: string): NodeOption[] {
    const urls = (row.urls ?? []).map((url, index) =>
      this.#node(url === undefined ? {} : { url }, null, `${path}.urls[${index}]`),
    );
    const ofRole = (role: 'prefill' | 'decode'): (NodeOption | null)[] =>
      (row[role] ?? []).map((node, index) => this.#node(node ?? {}, role, `${path}.${role}[${index}].url`));
    return [...urls, ...ofRole('prefill'), ...ofRole('decode')].filter((node) => node !== null);
  }

  #node(node: FileNode, role: NodeOption['role'], path: string): NodeOption | null {
    if (node.url === undefined) return null;
    const url = parseEngineUrl(node.url);
    if (typeof url !== 'string') return { url, role, bootstrapPort: node['bootstrap-port'] ?? null };
    this.#wrong(path, `\`${path}\` to be an address`, url, 'Write `http://HOST:PORT`.');
    return null;
  }

  running(values: FileValues): RunningOptions {
    const { listen, usage } = values;
    const { cert, key } = listen?.tls ?? {};
    const said = (name: string): boolean => this.#places.has(`listen.tls.${name}`);
    if (said('cert') !== said('key')) {
      const change = `Add \`${said('cert') ? 'key' : 'cert'}:\` to it.`;
      this.#wrong('listen.tls', '`cert` and `key` of `listen.tls` together', 'one of them', change);
    }
    const path = this.#path(usage?.path);
    return {
      wait: values.start === 'wait',
      workers: values.workers ?? 1,
      tls: cert === undefined || key === undefined ? null : { cert: this.#path(cert)!, key: this.#path(key)! },
      secret: values.secret === undefined ? null : this.#secret(values.secret, 'secret'),
      markers: values.markers === undefined ? null : this.#markers(values.markers, values.tenants?.length ?? 0),
      usage:
        path === null
          ? null
          : { path, rotateBytes: usage?.['rotate-bytes'] ?? USAGE_ROTATE_BYTES, keep: usage?.keep ?? USAGE_KEEP },
    };
  }

  /** Null where something of it is wrong, which is among the mistakes then. */
  #markers(values: FileMarkers, tenants: number): MarkerOptions | null {
    const { secret: source, periods = [], 'per-tenant': perTenant = DEFAULT_MARKERS_PER_TENANT } = values;
    const named = periods.filter((each) => each !== undefined);
    const secret = source === undefined ? null : this.#secret(source, 'markers.secret');
    const length = secret === null ? 0 : Buffer.byteLength(secret.reveal());
    if (secret !== null && length < MARKER_SECRET_BYTES_MIN) {
      const expected = `a secret of at least ${MARKER_SECRET_BYTES_MIN} characters at \`markers.secret\``;
      this.#wrong('markers.secret', expected, `${length}`, 'Draw a longer one: `openssl rand -hex 32`.');
    }
    const all = tenants * named.length * perTenant;
    if (all > MARKERS_GIVEN_MAX) {
      const expected = `at most ${MARKERS_GIVEN_MAX} markers of all tenants and periods`;
      this.#wrong('markers', expected, `${all}`, 'Take old periods out, or lower `per-tenant`.');
    }
    if (secret === null || length < MARKER_SECRET_BYTES_MIN || named.length === 0) return null;
    return { secret, periods: named, perTenant, holdBack: values['hold-back'] ?? null };
  }

  #secret(source: string, path: string): SecretText | null {
    const rest = source.slice(source.indexOf(':') + 1);
    const isFile = source.startsWith('file:');
    const absolute = isFile ? this.#path(rest)! : '';
    if (isFile) this.files.push(absolute);
    const found = findSecret(
      isFile ? { kind: 'file', path: absolute } : { kind: 'env', name: rest },
      this.#world.variables,
    );
    if (typeof found !== 'string') return found;
    const where = isFile ? `the file ${shown(rest)}` : `the variable \`${rest}\``;
    const change = isFile ? 'Write it there, as the only line.' : 'Set it where the server is started.';
    this.#wrong(path, `${where}, named by \`${path}\`, to hold a key`, found, change);
    return null;
  }

  #path(path: string): string;
  #path(path: string | undefined): string | null;
  #path(path: string | undefined): string | null {
    return path === undefined ? null : resolve(dirname(this.#world.path), path);
  }

  #wrong(path: string, expected: string, came: string, change: string): void {
    const at = this.#places.get(path) ?? { line: 1, column: 1 };
    this.mistakes.push({ at, expected, came, change });
  }
}
