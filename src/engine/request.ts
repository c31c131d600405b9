/** One request as the coordinator keeps it. */
import type { GuardName } from '../handoff/guards.js';
import type { EngineRequest, EngineSink } from '../handoff/engine-port.js';
import type { RoomUse } from './rooms.js';
import type { Sampling } from './traffic.js';

export interface Request {
  readonly request: EngineRequest;
  readonly sink: EngineSink;
  readonly maxTokens: number;
  readonly room: RoomUse;
  slot: number;
  prefillTokens: number;
  promptTokens: number;
  completionTokens: number;
  /** Tokens that decode says it sent, once its output has ended; null before. */
  decodedTokens: number | null;
  /** Tokens of the prompt that prefill found in the tenant's own sealed pages. */
  cachedTokens: number;
  finishReason: 'stop' | 'length' | null;
  acknowledged: number;
  guard: GuardName | null;
  guardWords: string;
  isEnded: boolean;
}

/** A request that has no slot yet. */
export function newRequest(request: EngineRequest, sink: EngineSink, maxTokens: number, room: RoomUse): Request {
  return {
    request,
    sink,
    maxTokens,
    room,
    slot: -1,
    prefillTokens: 0,
    promptTokens: 0,
    completionTokens: 0,
    decodedTokens: null,
    cachedTokens: 0,
    finishReason: null,
    acknowledged: 0,
    guard: null,
    guardWords: '',
    isEnded: false,
  };
}

export function samplingOf(one: Request): Sampling {
  const { temperature, seed, ignoreEos } = one.request;
  return { temperature, seed, maxTokens: one.maxTokens, ignoreEos: ignoreEos ?? false };
}

/** Salts are compared as numbers by the machines: the first 31 bits of their hex, which HMAC has made even. */
export function saltIndex(salt: string): number {
  return salt === '' ? 0 : Number.parseInt(salt.slice(0, 8), 16) >>> 1;
}
