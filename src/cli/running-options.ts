/** How the server runs beside what it serves: waiting for engines, TLS, the secret of salts, the log of settled requests. */
import { resolve } from 'node:path';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { WORKERS_MAX } from './defaults.js';
import type { MarkerOptions } from './config-markers.js';
import type { ServeFlags } from './flags.js';
import { parseSecretFlag, type SecretText } from './secret-text.js';
import { USAGE_KEEP, USAGE_ROTATE_BYTES } from './usage-log.js';

/** Files in PEM; paths are absolute. */
export interface TlsOption {
  readonly cert: string;
  readonly key: string;
}

export interface UsageOption {
  /** Absolute. */
  readonly path: string;
  readonly rotateBytes: number;
  readonly keep: number;
}

export interface RunningOptions {
  /** Whether the start waits for engines that can not be reached. */
  readonly wait: boolean;
  /** Processes that share the tenants' port. */
  readonly workers: number;
  /** Null: http. */
  readonly tls: TlsOption | null;
  /** What salts are made from; null: the start draws one. */
  readonly secret: SecretText | null;
  /** Null: there are none. */
  readonly markers: MarkerOptions | null;
  /** Null: nothing is written. */
  readonly usage: UsageOption | null;
}

export const DEFAULT_RUNNING: RunningOptions = {
  wait: false,
  workers: 1,
  tls: null,
  secret: null,
  markers: null,
  usage: null,
};

/** A flag overrides what `file` says. Throws CodedError `usage`. */
export function parseRunning(
  flags: ServeFlags,
  file: RunningOptions,
  variables: Readonly<Record<string, string | undefined>>,
): RunningOptions {
  const { tlsCert, tlsKey } = flags;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    const missing = tlsCert === undefined ? '--tls-cert' : '--tls-key';
    throw new CodedError('usage', `Expected \`--tls-cert\` and \`--tls-key\` together, got no \`${missing}\``);
  }
  const usage = flags.usage === undefined ? null : resolve(flags.usage);
  return {
    wait: flags.wait ?? file.wait,
    workers: parseWorkers(flags.workers) ?? file.workers,
    tls: tlsCert === undefined || tlsKey === undefined ? file.tls : { cert: resolve(tlsCert), key: resolve(tlsKey) },
    secret: flags.secret === undefined ? file.secret : parseSecretFlag('--secret', flags.secret, variables),
    markers: file.markers,
    usage:
      usage === null ? file.usage : { rotateBytes: USAGE_ROTATE_BYTES, keep: USAGE_KEEP, ...file.usage, path: usage },
  };
}

function parseWorkers(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^[1-9]\d?$/.test(text) && Number(text) <= WORKERS_MAX) return Number(text);
  throw new CodedError(
    'usage',
    `Expected \`--workers\` to be a whole number from 1 to ${WORKERS_MAX}, got ${shown(text)}`,
  );
}
