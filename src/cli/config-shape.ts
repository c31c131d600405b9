/** What `cofferdam.yaml` may hold: all that `cofferdam serve` can be told, and the bounds that have no flag. */
import type { CountShape, Field, RecordShape } from '../config/shape.js';
import { SEVERITIES } from '../findings/finding.js';
import {
  CLOSE_GRACE_MS,
  KEYS_MAX,
  TENANT_OPEN_BOUND,
  TENANT_OPEN_MAX,
  WAIT_MS_MAX,
  WAITING_MAX,
} from '../gateway/bounds.js';
import { FAULTS } from '../handoff/faults.js';
import { GUARDS } from '../handoff/guards.js';
import { BODY_BYTES_MAX } from '../wire/index.js';
import { RUNNING, USAGE } from './config-running.js';
import { MARKERS, type MarkersPart } from './config-markers.js';
import { type FileUpstream, UPSTREAM_EXAMPLE, UPSTREAM_SHAPE } from './config-upstreams.js';
import * as defaults from './defaults.js';

export const CONFIG_SCHEMA_TITLE = 'cofferdam.yaml';
export const CONFIG_SCHEMA_DESCRIPTION =
  'What `cofferdam serve` is told. Keys, ports and what must fit together are checked at the start.';

/** The file that is read where no `--config` names one. */
export const CONFIG_FILE = 'cofferdam.yaml';

/** Keys of one tenant: the one in use, the one that follows it, and a few more. */
const TENANT_KEYS_MAX = 8;
const WAITING_BOUND = 65_536;
const BODY_BYTES_BOUND: number = 32 * 1024 * 1024;
const BODY_BYTES_LEAST = 1024;
const TEN_MINUTES_MS = 600_000;

const number = (unit: string, min: number, max: number): CountShape => ({
  kind: 'count',
  min,
  max,
  unit,
  suffixes: false,
});
const PORT: CountShape = { kind: 'count', min: 0, max: 65_535, unit: '', suffixes: false };
const HOST_PATTERN = '[A-Za-z0-9.:_[\\]%\\-]{1,255}';

const LISTEN: Field = {
  name: 'listen',
  words: "The tenants' port",
  shape: {
    kind: 'record',
    fields: [
      {
        name: 'host',
        shape: { kind: 'text', pattern: HOST_PATTERN, words: 'an address or a name' },
        words: "Where both ports listen; beyond loopback the operators' port needs a key",
        default: defaults.DEFAULT_HOST,
        flag: '--host',
      },
      {
        name: 'port',
        shape: PORT,
        words: "The tenants' port; 0 lets the system choose",
        default: defaults.DEFAULT_PORT,
        flag: '--port',
      },
      {
        name: 'names',
        shape: {
          kind: 'list',
          item: { kind: 'text', pattern: HOST_PATTERN, words: 'a name as it stands in `Host`, without a port' },
          min: 0,
          max: 32,
          unique: true,
        },
        words: 'Further names under which clients reach both ports: others are refused in `Host`',
        default: [],
      },
      {
        name: 'tls',
        words: 'Certificate and key of both ports; read again when they change. Without them the ports speak http',
        shape: {
          kind: 'record',
          fields: [
            {
              name: 'cert',
              shape: { kind: 'text', pattern: '.{1,4095}', words: 'a file of certificates in PEM, the own one first' },
              words: 'The certificate',
              flag: '--tls-cert',
            },
            {
              name: 'key',
              shape: { kind: 'text', pattern: '.{1,4095}', words: 'a file with a private key in PEM' },
              words: 'Its private key, without a passphrase',
              flag: '--tls-key',
            },
          ],
        },
      },
    ],
  },
};

const OPERATORS: Field = {
  name: 'operators',
  words: "The operators' port: the page, metrics, findings, health",
  shape: {
    kind: 'record',
    fields: [
      {
        name: 'port',
        shape: PORT,
        words: "The operators' port; 0 lets the system choose",
        default: defaults.DEFAULT_OPS_PORT,
        flag: '--ops-port',
      },
      {
        name: 'key',
        shape: { kind: 'secret' },
        words: "Where the operators' key is to be found; on loopback none is needed",
        live: true,
        flag: '--ops-key',
        example: ['key: env:COFFERDAM_OPS_KEY'],
      },
    ],
  },
};

const TENANTS: Field = {
  name: 'tenants',
  words: 'Who may ask, and where their keys are to be found. Without tenants the start makes two with fresh keys',
  live: true,
  flag: '--tenant',
  example: [
    'tenants:',
    '  - name: acme',
    '    keys:',
    '      - env:ACME_KEY           # a variable of the environment',
    '  - name: globex',
    '    keys:                      # while a key is being replaced, both hold',
    '      - file:keys/globex       # one line; the path begins at this file',
    '      - file:keys/globex.next',
  ],
  shape: {
    kind: 'list',
    min: 0,
    max: defaults.TENANTS_MAX,
    item: {
      kind: 'record',
      fields: [
        {
          name: 'name',
          shape: {
            kind: 'text',
            pattern: `[a-z0-9][a-z0-9_\\-]{0,${defaults.TENANT_NAME_CHARACTERS_MAX - 1}}`,
            words: `1 to ${defaults.TENANT_NAME_CHARACTERS_MAX} of a-z, 0-9, \`-\` and \`_\``,
            hidden: true,
          },
          words: "The tenant's name, in metrics and findings",
          required: true,
        },
        {
          name: 'keys',
          shape: { kind: 'list', item: { kind: 'secret' }, min: 1, max: TENANT_KEYS_MAX, unique: true },
          words: 'Where its keys are to be found; each of them lets it in',
          required: true,
        },
      ],
    },
  },
};

const LIMITS: Field = {
  name: 'limits',
  words: 'What is refused before an engine sees it',
  live: true,
  shape: {
    kind: 'record',
    fields: [
      {
        name: 'open-per-tenant',
        shape: number('requests', 1, TENANT_OPEN_BOUND),
        words: 'Requests of one tenant that run or wait at once; above it 429',
        default: TENANT_OPEN_MAX,
      },
      {
        name: 'waiting',
        shape: number('requests', 1, WAITING_BOUND),
        words: 'Requests of all tenants that wait at once; above it 503',
        default: WAITING_MAX,
      },
      {
        name: 'wait',
        shape: { kind: 'time', minMs: 100, maxMs: TEN_MINUTES_MS },
        words: 'How long a request waits for its turn; then 503',
        default: WAIT_MS_MAX,
      },
      {
        name: 'body',
        shape: { kind: 'count', min: BODY_BYTES_LEAST, max: BODY_BYTES_BOUND, unit: 'bytes', suffixes: true },
        words: 'The body of one request; above it 413',
        default: BODY_BYTES_MAX,
      },
    ],
  },
};

const UNSAFE: readonly Field[] = [
  {
    name: 'guards',
    words: 'What stops a fault. All are on; off only on loopback, to see what each of them is for',
    shape: {
      kind: 'record',
      fields: [
        {
          name: 'mode',
          shape: { kind: 'choice', of: ['on', 'off'] },
          words: 'Every guard at once. Not said: all are on but those that stop a fault which is on',
          flag: '--guards',
          example: ['mode: on'],
        },
        {
          name: 'disabled',
          shape: { kind: 'list', item: { kind: 'choice', of: GUARDS }, min: 0, max: GUARDS.length, unique: true },
          words: 'Guards that are off by name',
          default: [],
          flag: '--guard-off',
        },
      ],
    },
  },
  {
    name: 'faults',
    shape: { kind: 'list', item: { kind: 'choice', of: FAULTS }, min: 0, max: FAULTS.length, unique: true },
    words: 'Faults of the embedded engine that are on: only on loopback, never in service',
    default: [],
    flag: '--fault',
  },
  {
    name: 'seed',
    shape: number('', 0, defaults.SEED_MAX),
    words: 'Where the chance of a fault begins',
    default: defaults.DEFAULT_SEED,
    flag: '--seed',
  },
];

export const SERVE_SHAPE: RecordShape = {
  kind: 'record',
  fields: [
    LISTEN,
    OPERATORS,
    TENANTS,
    LIMITS,
    {
      name: 'upstreams',
      words: 'What serves behind the gateway: the embedded engine alone, or engines that are there',
      default: [{ kind: 'embedded' }],
      shape: { kind: 'list', min: 1, max: defaults.NODES_MAX, item: UPSTREAM_SHAPE },
      flag: '--upstream',
      example: UPSTREAM_EXAMPLE,
    },
    ...RUNNING,
    {
      name: 'on-small-pool',
      shape: { kind: 'choice', of: ['lower', 'refuse'] },
      words: 'When a pool is smaller than the context: lower the limit, or refuse to start',
      default: 'lower',
      flag: '--on-small-pool',
    },
    {
      name: 'drain',
      words: 'The end, asked for by SIGTERM',
      live: true,
      shape: {
        kind: 'record',
        fields: [
          {
            name: 'timeout',
            shape: { kind: 'time', minMs: 0, maxMs: TEN_MINUTES_MS },
            words: 'How long open requests may go on; then each ends with one error',
            default: CLOSE_GRACE_MS,
          },
        ],
      },
    },
    {
      name: 'findings',
      words: 'What is noticed while it serves; all of it is on the operators’ port',
      live: true,
      shape: {
        kind: 'record',
        fields: [
          {
            name: 'log',
            shape: { kind: 'choice', of: ['none', ...SEVERITIES] },
            words: 'The least severity of new findings that are also written to standard error, a line of JSON each',
            default: 'none',
          },
        ],
      },
    },
    MARKERS,
    USAGE,
    ...UNSAFE,
    {
      name: 'output',
      shape: { kind: 'choice', of: ['table', 'json'] },
      words: 'How the facts of the start are printed',
      default: 'table',
      flag: '--output',
    },
  ],
};

/** Keys of all tenants together. */
export const CONFIG_KEYS_MAX: number = KEYS_MAX;

/**
 * A file that was checked against the shape, without defaults: counts as numbers, times in milliseconds. What was wrong is
 * undefined.
 */
export interface FileValues extends MarkersPart {
  readonly listen?: {
    readonly host?: string;
    readonly port?: number;
    readonly names?: readonly string[];
    readonly tls?: { readonly cert?: string; readonly key?: string };
  };
  readonly operators?: { readonly port?: number; readonly key?: string };
  readonly tenants?: readonly (
    | { readonly name?: string; readonly keys?: readonly (string | undefined)[] }
    | undefined
  )[];
  readonly limits?: {
    readonly 'open-per-tenant'?: number;
    readonly waiting?: number;
    readonly wait?: number;
    readonly body?: number;
  };
  readonly upstreams?: readonly (FileUpstream | undefined)[];
  readonly secret?: string;
  readonly usage?: { readonly path?: string; readonly 'rotate-bytes'?: number; readonly keep?: number };
  readonly start?: string;
  readonly workers?: number;
  readonly drain?: { readonly timeout?: number };
  readonly findings?: { readonly log?: string };
  readonly guards?: { readonly mode?: string; readonly disabled?: readonly string[] };
  readonly faults?: readonly string[];
}
