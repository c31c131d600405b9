/** What is written to an SGLang server for one request. Every field that only a gateway may set is set or left out here. */
import { randomBytes } from 'node:crypto';
import { assert } from '../../base/assert.js';
import { openAiBody } from '../openai/request.js';
import type { Prompt, UpstreamRequest } from '../upstream.js';

/** Routes by the kind of prompt, on every node. */
export const ROUTES: Readonly<Record<Prompt['kind'], string>> = {
  chat: '/v1/chat/completions',
  text: '/v1/completions',
};

/** Where decode finds the prefill that works for it. A list where one body asks for several answers. */
export interface Bootstrap {
  readonly host: string;
  /** Null: prefill's own default. */
  readonly port: number | null;
  /** Below 2^63, and drawn by `freshRoom` for this request alone. */
  readonly room: bigint;
}

const ROOM_MAX = 2n ** 63n - 1n;

/** 63 random bits: nobody can guess another request's, and no two are equal. */
export function freshRoom(): bigint {
  return randomBytes(8).readBigUInt64BE() & ROOM_MAX;
}

/** Fields that name another request's pages or place: never a client's, whatever guards are off. */
const OURS: ReadonlySet<string> = new Set([
  'rid',
  'bootstrap_host',
  'bootstrap_port',
  'bootstrap_room',
  'stream_options',
]);

/** `streamed` is how the engine answers, which need not be how the tenant is answered. */
export function requestBody(
  request: UpstreamRequest,
  model: string,
  streamed: boolean,
  bootstrap: Bootstrap | readonly Bootstrap[] | null,
): string {
  const { salt } = request;
  const fields = Object.entries({ ...request.engineFields, ...openAiBody(request, model, streamed) });
  const body = JSON.stringify({
    ...Object.fromEntries(fields.filter(([name]) => !OURS.has(name))),
    // The engine aborts by the beginning of this id, so that none may be the beginning of another: all have one length.
    rid: request.id,
    ...(salt === '' ? {} : { cache_salt: salt }),
    // The usage with every chunk tells decode's count of the prompt before the first text; servers that don't know it say it last.
    ...(streamed ? { stream_options: { include_usage: true, continuous_usage_stats: true } } : { stream: false }),
  });
  return bootstrap === null ? body : withBootstrap(body, bootstrap);
}

/** A room does not fit a number of JavaScript, so that its digits are written into the text. */
function withBootstrap(body: string, bootstrap: Bootstrap | readonly Bootstrap[]): string {
  const list = isList(bootstrap) ? bootstrap : [bootstrap];
  assert(list.length > 0, 'a body with rooms has at least one');
  for (const { room } of list) assert(room >= 0n && room <= ROOM_MAX, 'a room is a number below 2^63');
  const written = (values: readonly string[]): string => (isList(bootstrap) ? `[${values.join(',')}]` : values[0]!);
  const hosts = written(list.map(({ host }) => JSON.stringify(host)));
  const ports = written(list.map(({ port }) => String(port)));
  const rooms = written(list.map(({ room }) => String(room)));
  return `${body.slice(0, -1)},"bootstrap_host":${hosts},"bootstrap_port":${ports},"bootstrap_room":${rooms}}`;
}

function isList(bootstrap: Bootstrap | readonly Bootstrap[]): bootstrap is readonly Bootstrap[] {
  return Array.isArray(bootstrap);
}

/** Names and values of the headers that every leg carries besides the node's own. */
export function requestHeaders(request: UpstreamRequest): readonly string[] {
  return ['x-request-id', request.id, 'traceparent', request.traceparent];
}
