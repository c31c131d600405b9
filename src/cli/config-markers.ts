/** What a configuration file says of markers: where their secret is to be found, for which periods, how many for each tenant. */
import { MARKER_SECRET_BYTES_MIN, enumerateMarkers, type Marker } from '../markers/marker.js';
import type { Field } from '../config/shape.js';
import { MARKERS_GIVEN_MAX } from '../gateway/bounds.js';
import type { SecretText } from './secret-text.js';

export const PERIOD_PATTERN = '[A-Za-z0-9][A-Za-z0-9._\\-]{0,31}';
export const PERIODS_MAX = 64;
export const MARKERS_PER_TENANT_MAX = 1024;
export const DEFAULT_MARKERS_PER_TENANT = 16;
/** Longer than any marker: what came before one is held back too. */
const HOLD_BACK_MAX = 4096;

export const MARKERS: Field = {
  name: 'markers',
  words:
    'Words that only one tenant ever sees, for planting into its prompts and data: `cofferdam marker TENANT` prints them. Where one of them turns up in the answer to another tenant, that answer is withheld and the engine is out of rotation',
  live: true,
  example: [
    'markers:',
    '  secret: env:COFFERDAM_MARKER_SECRET',
    "  periods: ['2026-11', '2026-12']",
    '  per-tenant: 16',
  ],
  shape: {
    kind: 'record',
    fields: [
      {
        name: 'secret',
        shape: { kind: 'secret', whole: true },
        words: `What they all follow from, at least ${MARKER_SECRET_BYTES_MIN} characters, the same for all replicas`,
        required: true,
      },
      {
        name: 'periods',
        shape: {
          kind: 'list',
          item: { kind: 'text', pattern: PERIOD_PATTERN, words: 'letters, digits, `.`, `_` and `-`' },
          min: 1,
          max: PERIODS_MAX,
          unique: true,
        },
        words:
          'The stretches of time whose markers are live, by names of your own, such as `2026-11`; the last is for planting',
        required: true,
      },
      {
        name: 'per-tenant',
        shape: { kind: 'count', min: 1, max: MARKERS_PER_TENANT_MAX, unit: 'markers', suffixes: false },
        words: `Markers of each tenant in each period; of all together at most ${MARKERS_GIVEN_MAX}`,
        default: DEFAULT_MARKERS_PER_TENANT,
      },
      {
        name: 'hold-back',
        shape: { kind: 'count', min: 0, max: HOLD_BACK_MAX, unit: 'characters', suffixes: false },
        words:
          'How much of the end of an answer waits at least. Not said: what may become part of a marker, and no more. 0: nothing waits, and up to eleven characters of a marker leave before it is recognised',
      },
    ],
  },
};

export interface FileMarkers {
  readonly secret?: string;
  readonly periods?: readonly (string | undefined)[];
  readonly 'per-tenant'?: number;
  readonly 'hold-back'?: number;
}

/** The part of a file that is theirs. */
export interface MarkersPart {
  readonly markers?: FileMarkers;
}

export interface MarkerOptions {
  readonly secret: SecretText;
  /** At least one; the last is for planting. */
  readonly periods: readonly string[];
  readonly perTenant: number;
  /** Characters; null: what may become part of a marker. */
  readonly holdBack: number | null;
}

/** Every live marker of these tenants, the same in every process with the same secret. */
export function liveMarkersOf(options: MarkerOptions, tenants: readonly string[]): readonly Marker[] {
  return enumerateMarkers(Buffer.from(options.secret.reveal()), tenants, options.periods, options.perTenant);
}
