import { unreachable } from '../base/assert.js';
import { CodedError } from '../base/errors.js';
import { decideAdmission, effectiveLimit } from '../handoff/admission.js';
import { type GuardName, guardBit } from '../handoff/guards.js';
import type { Upstream } from '../upstream/upstream.js';
import {
  bearerKey,
  checkBodyHead,
  childTraceparent,
  freshId,
  numberAsWritten,
  parseJsonObject,
  type Route,
  readBody,
  readHeader,
} from '../wire/index.js';
import { RETRY_AFTER_S, TENANT_BODY_BYTES_MAX } from './bounds.js';
import type { Exchange } from './exchange.js';
import { internalFinding } from './findings.js';
import type { LadderContext } from './context.js';
import { type ParsedRequest, readRequest } from './policy.js';
import { Relay } from './relay.js';
import type { Tenant } from './tenants.js';
import type { TenantAccount } from './waiting.js';
import { engineOut } from './watch.js';

/** Tokens of output where nothing bounds them: no `max_tokens`, the guard `admission` off, and a context that is full. */
const UNBOUNDED_OUTPUT_TOKENS = 16;

/**
 * The ladder of a request: authenticate, read the body, request policy, count, admit, wait fairly, dispatch, relay, verify
 * usage, settle. Each rung throws or calls back with its own error, and `serve` sends it; nothing is taken before `wait`, and
 * what is taken there goes back in one place, the relay.
 */
export class Ladder {
  readonly #context: LadderContext;

  constructor(context: LadderContext) {
    this.#context = context;
  }

  /** Never rejects: every failure becomes the answer. */
  async serve(exchange: Exchange, route: Route): Promise<void> {
    try {
      const account = this.#authenticate(exchange);
      this.#requireEngine();
      const body = await this.#readBody(exchange, account);
      if (exchange.settled) return;
      this.#requireEngine();
      const parsed = this.#applyPolicy(route, body);
      const counted = await this.#count(parsed);
      if (exchange.settled) return;
      const maxTokens = this.#admit(parsed, counted);
      if (maxTokens instanceof CodedError) {
        exchange.refuse(maxTokens);
        return;
      }
      this.#waitAndDispatch(exchange, account, parsed, counted, maxTokens);
    } catch (thrown) {
      if (!(thrown instanceof CodedError)) this.#context.findings.raise(internalFinding(thrown));
      exchange.refuse(thrown);
    }
  }

  /** For routes that need a key and nothing else. */
  authenticate(exchange: Exchange): Tenant {
    return this.#authenticate(exchange).tenant;
  }

  #on(guard: GuardName): boolean {
    return (this.#context.guards & guardBit(guard)) !== 0;
  }

  #authenticate(exchange: Exchange): TenantAccount {
    const tenant = this.#context.registry.lookUp(bearerKey(exchange.request));
    if (tenant === null) {
      throw new CodedError('invalid_api_key', 'Expected one `Authorization: Bearer` header with a key of a tenant.');
    }
    return this.#context.accounts.get(tenant)!;
  }

  #requireEngine(): void {
    if (!this.#context.watch.rotation.isIn) throw engineOut();
  }

  /** The parsed body, with its bytes charged to the tenant for as long as they are held. */
  async #readBody(exchange: Exchange, account: TenantAccount): Promise<ReadBody> {
    const { bodyBytesMax } = this.#context;
    checkBodyHead(exchange.request, bodyBytesMax);
    exchange.wantBody();
    let charged = 0;
    const charge = (bytes: number): void => {
      charged += bytes;
      account.bodyBytes += bytes;
      if (account.bodyBytes > TENANT_BODY_BYTES_MAX) throw tooManyBytes();
    };
    try {
      const bytes = await readBody(exchange.request, { bytesMax: bodyBytesMax, charge });
      return { bytes, object: parseJsonObject(bytes) };
    } finally {
      account.bodyBytes -= charged;
    }
  }

  #applyPolicy(route: Route, body: ReadBody): ParsedRequest {
    const { upstream, metrics, temperatureDefault } = this.#context;
    const guarded = this.#on('policy');
    try {
      const parsed = readRequest(route, body.object, {
        guarded,
        models: upstream.describe().models,
        temperatureDefault,
      });
      return guarded ? parsed : { ...parsed, engineFields: exactRoom(parsed.engineFields, body.bytes) };
    } catch (thrown) {
      if (thrown instanceof CodedError && thrown.code === 'field_not_allowed') metrics.guardHit('policy');
      throw thrown;
    }
  }

  async #count(parsed: ParsedRequest): Promise<number> {
    const count = this.#context.upstream.count(parsed.prompt);
    const counted = count.kind === 'exact' ? count.tokens : await count.exact();
    if (counted >= 1) return counted;
    throw new CodedError('invalid_request', 'Expected a prompt of at least one token, got an empty one.', {
      param: promptParam(parsed),
    });
  }

  /** Tokens of output that are granted. The refusal is returned: a throw costs 20 us, and this one must cost less than an answer. */
  #admit(parsed: ParsedRequest, counted: number): number | CodedError {
    const { upstream, metrics } = this.#context;
    const capacity = upstream.capacity();
    if (!this.#on('admission')) {
      const left = (capacity.context ?? 0) - counted;
      metrics.admitted(false);
      return parsed.maxTokens ?? (left >= 1 ? left : UNBOUNDED_OUTPUT_TOKENS);
    }
    const verdict = decideAdmission(counted, parsed.maxTokens, capacity);
    if (verdict.kind === 'admitted') {
      metrics.admitted(verdict.clamped);
      return verdict.maxTokens;
    }
    metrics.guardHit('admission');
    const asked = parsed.maxTokens === null ? 'no max_tokens' : `max_tokens ${parsed.maxTokens}`;
    switch (verdict.kind) {
      case 'unknown':
        return new CodedError(
          'capacity_unknown',
          'The capacity of the engine is not known, so nothing is admitted; try again later.',
          { retryAfterS: RETRY_AFTER_S },
        );
      case 'prompt-too-long':
        return new CodedError(
          'context_length_exceeded',
          `Expected a prompt of at most ${verdict.limit.tokens} tokens (set by the ${verdict.limit.limitedBy}), ` +
            `got ${counted} tokens with ${asked}.`,
          { param: promptParam(parsed) },
        );
      case 'total-too-long':
        return new CodedError(
          'context_length_exceeded',
          `Expected prompt and output of at most ${verdict.context} tokens together (set by the advertised context), ` +
            `got a prompt of ${counted} tokens with ${asked}.`,
          { param: 'max_tokens' },
        );
      default:
        return unreachable(verdict);
    }
  }

  #waitAndDispatch(
    exchange: Exchange,
    account: TenantAccount,
    parsed: ParsedRequest,
    counted: number,
    maxTokens: number,
  ): void {
    const { room, upstream } = this.#context;
    const relay = new Relay(this.#context, exchange, account, parsed, counted);
    // The last token's KV is never stored. Without admission a request may exceed the pool, and the engine is to see it.
    const tokens = this.#on('admission') ? counted + maxTokens - 1 : 0;
    const ticket = room.enter(account, tokens, {
      granted: (granted) =>
        relay.dispatch(granted, upstream, {
          id: freshId(),
          traceparent: childTraceparent(readHeader(exchange.request, 'traceparent')),
          prompt: parsed.prompt,
          promptTokens: counted,
          maxTokens,
          temperature: parsed.temperature,
          seed: parsed.seed ?? Number.parseInt(exchange.id.slice(0, 8), 16),
          tenant: account.tenant.number,
          salt: this.#on('salt') ? account.tenant.salt : '',
          engineFields: parsed.engineFields,
          streamed: parsed.stream,
        }),
      refused: (error) => {
        exchange.onInterrupt = null;
        exchange.refuse(error);
      },
    });
    if (ticket.phase !== 'waiting') return;
    exchange.onInterrupt = (why) => {
      ticket.cancel();
      if (why !== 'gone') exchange.refuse(why);
    };
  }
}

interface ReadBody {
  readonly bytes: Buffer;
  readonly object: Record<string, unknown>;
}

function promptParam(parsed: ParsedRequest): string {
  return parsed.route === 'chat' ? 'messages' : 'prompt';
}

function tooManyBytes(): CodedError {
  return new CodedError(
    'rate_limit_exceeded',
    `Expected at most ${TENANT_BODY_BYTES_MAX} bytes of bodies of one tenant at once; wait until some have been read.`,
    { retryAfterS: RETRY_AFTER_S },
  );
}

/** The largest request that is admitted, in tokens of the decode pool. */
export function requestTokensMax(upstream: Upstream): number {
  const capacity = upstream.capacity();
  const limit = effectiveLimit(capacity);
  return limit === null ? 0 : Math.min((capacity.context ?? 1) - 1, capacity.decodePool ?? 0);
}

/** The engine fields with the room's digits as they came: rooms are 63-bit numbers, which JSON.parse rounds. */
function exactRoom(fields: Readonly<Record<string, unknown>>, body: Buffer): Readonly<Record<string, unknown>> {
  const room = fields.bootstrap_room;
  if (typeof room !== 'number' || Number.isSafeInteger(room)) return fields;
  const digits = numberAsWritten(body, 'bootstrap_room');
  return digits === null ? fields : { ...fields, bootstrap_room: digits };
}
