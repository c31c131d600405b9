/** Fields and headers with which a tenant could name what is not its own: pages, rooms, slots, sessions, namespaces, workers. */
import type { TransferParams } from './answer.js';

export const FIELD_KINDS = ['transfer', 'room', 'namespace', 'routing'] as const;
export type FieldKind = (typeof FIELD_KINDS)[number];

export interface FieldCase {
  /** As evidence names it: `vllm_xargs.kv_transfer_params (another tenant's)`. Holds no value of a handle. */
  readonly name: string;
  readonly kind: FieldKind;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What is known of the tenant whose data is aimed at. */
export interface Aim {
  /** The id of one of its answers, and its name. */
  readonly answerId: string;
  readonly tenant: string;
}

/** Objects through which engines and SDKs take further fields. */
const CONTAINERS = ['vllm_xargs', 'extra_body'] as const;
/** Numbers of one's own handle that are lowered by one, each alone. */
const NEIGHBOURS_MAX = 4;

/** Another tenant's real transfer parameters, at the top and nested. `whose` goes into the names. */
export function realCases(whose: string, params: TransferParams): FieldCase[] {
  const named = Object.values(params).find((value) => typeof value === 'string');
  if (named === undefined) return everywhere(whose, params);
  const alone: FieldCase = {
    name: `cofferdam_handle (${whose})`,
    kind: 'transfer',
    fields: { cofferdam_handle: named },
  };
  return [...everywhere(whose, params), alone];
}

/** Guesses: what was given out just before the asking tenant's own, or, where it has none, what engines name first. */
export function guessedCases(own: TransferParams | null): FieldCase[] {
  return (own === null ? BLIND : neighbours(own)).flatMap((guess) => everywhere('guessed', guess));
}

const BLIND: readonly TransferParams[] = [
  { handle: '0.1.1' },
  { do_remote_prefill: true, do_remote_decode: false, remote_engine_id: '0', remote_block_ids: [0, 1, 2, 3] },
];

function everywhere(whose: string, params: TransferParams): FieldCase[] {
  return [
    { name: `kv_transfer_params (${whose})`, kind: 'transfer', fields: { kv_transfer_params: params } },
    ...CONTAINERS.map(
      (container): FieldCase => ({
        name: `${container}.kv_transfer_params (${whose})`,
        kind: 'transfer',
        fields: { [container]: { kv_transfer_params: params } },
      }),
    ),
  ];
}

/** What was given out just before one's own: each number in each of its strings, less one. */
function neighbours(own: TransferParams): TransferParams[] {
  const found: TransferParams[] = [];
  for (const [name, value] of Object.entries(own)) {
    if (typeof value !== 'string') continue;
    for (const { 0: digits, index } of value.matchAll(/\d{1,9}/g)) {
      if (Number(digits) === 0 || found.length >= NEIGHBOURS_MAX) continue;
      const lowered = `${value.slice(0, index)}${Number(digits) - 1}${value.slice(index + digits.length)}`;
      found.push({ ...own, [name]: lowered });
    }
  }
  return found;
}

/** The room that both tenants name. */
export const SHARED_ROOM = { bootstrap_room: 1 } as const;

export function otherCases({ answerId, tenant }: Aim): FieldCase[] {
  const field = (kind: FieldKind, fields: Readonly<Record<string, unknown>>): FieldCase => ({
    name: Object.keys(fields).join(' + '),
    kind,
    fields,
  });
  const header = (name: string, value: string): FieldCase => ({
    name: `header ${name}`,
    kind: 'routing',
    headers: { [name]: value },
  });
  return [
    field('room', SHARED_ROOM),
    field('room', { bootstrap_host: '127.0.0.1', bootstrap_port: 9, bootstrap_room: 1 }),
    { name: 'extra_body.bootstrap_room', kind: 'room', fields: { extra_body: SHARED_ROOM } },
    field('namespace', { cache_salt: tenant }),
    field('namespace', { cache_salt: '' }),
    field('namespace', { extra_key: tenant }),
    field('namespace', { session: tenant }),
    field('namespace', { session_id: tenant }),
    field('namespace', { session_params: { id: tenant, rid: answerId } }),
    field('namespace', { previous_response_id: answerId }),
    field('namespace', { conversation_id: answerId }),
    field('namespace', { id_slot: 0 }),
    field('namespace', { slot_id: 0 }),
    field('routing', { data_parallel_rank: 0 }),
    field('routing', { routed_dp_rank: 0 }),
    field('routing', { backend_instance_id: 0 }),
    field('routing', { priority: -1 }),
    header('x-request-id', answerId),
    header('x-session-id', tenant),
    header('x-tenant-id', tenant),
    header('x-user-id', tenant),
    header('x-data-parallel-rank', '0'),
    header('x-smg-routing-key', tenant),
    header('x-smg-target-worker', '0'),
  ];
}

/** Names under which engines take a request's id. */
export const ID_FIELDS = ['rid', 'request_id'] as const;
