import { CodedError } from '../base/errors.js';
import { type GuardName, guardBit } from '../handoff/guards.js';
import { bearerKey, checkBodyHead, numberAsWritten, parseJsonObject, type Route, readBody } from '../wire/index.js';
import { RETRY_AFTER_S, TENANT_BODY_BYTES_MAX } from './bounds.js';
import type { LadderContext } from './context.js';
import { engineOut } from './engine.js';
import type { Exchange } from './exchange.js';
import { internalFinding } from './findings.js';
import { type ParsedRequest, readRequest } from './policy.js';
import { Placing } from './placing.js';
import { Settling } from './settlement.js';
import type { Tenant } from './tenants.js';
import type { TenantAccount } from './waiting.js';

/**
 * The ladder of a request: authenticate, read the body, request policy, then `Placing`: count, admit, wait fairly, dispatch; then
 * the relay: relay, verify usage, settle. Each rung throws or calls back with its own error, and `serve` sends it; nothing is taken
 * before the wait, and what is taken there goes back in one place, the relay.
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
      const settling = this.#settling(exchange, account, route);
      const early = this.#context.meters.get(account.tenant)!.arrive();
      if (early !== null) {
        exchange.refuse(early);
        return;
      }
      this.#requireEngine();
      const body = await this.#readBody(exchange, account);
      if (exchange.settled) return;
      this.#requireEngine();
      const parsed = this.#applyPolicy(route, body);
      settling.read(parsed.model);
      await new Placing(this.#context, exchange, account, parsed, settling).place();
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
    if (!this.#context.engines.some((engine) => engine.isServing)) throw engineOut();
  }

  #settling(exchange: Exchange, { tenant }: TenantAccount, route: Route): Settling {
    const { clock, onSettled } = this.#context;
    const settling = new Settling(
      clock,
      { id: exchange.id, tenant: tenant.name, route },
      exchange.arrivedMs,
      onSettled,
    );
    exchange.onSettled = (error) => settling.answered(error);
    return settling;
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
    const { metrics, temperatureDefault } = this.#context;
    const guarded = this.#on('policy');
    try {
      const parsed = readRequest(route, body.object, {
        guarded,
        models: this.#context.models(),
        features: (model) => this.#context.features(model),
        temperatureDefault,
      });
      return guarded ? parsed : { ...parsed, engineFields: exactRoom(parsed.engineFields, body.bytes) };
    } catch (thrown) {
      if (thrown instanceof CodedError && thrown.code === 'field_not_allowed') metrics.guardHit('policy');
      throw thrown;
    }
  }
}

interface ReadBody {
  readonly bytes: Buffer;
  readonly object: Record<string, unknown>;
}

function tooManyBytes(): CodedError {
  return new CodedError(
    'rate_limit_exceeded',
    `Expected at most ${TENANT_BODY_BYTES_MAX} bytes of bodies of one tenant at once; wait until some have been read.`,
    { retryAfterS: RETRY_AFTER_S },
  );
}

/** The engine fields with the room's digits as they came: rooms are 63-bit numbers, which JSON.parse rounds. */
function exactRoom(fields: Readonly<Record<string, unknown>>, body: Buffer): Readonly<Record<string, unknown>> {
  const room = fields.bootstrap_room;
  if (typeof room !== 'number' || Number.isSafeInteger(room)) return fields;
  const digits = numberAsWritten(body, 'bootstrap_room');
  return digits === null ? fields : { ...fields, bootstrap_room: digits };
}
