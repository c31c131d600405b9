/** What travels between the coordinator and the two nodes: a protocol message as it is, and beside it what is not protocol. */
import type { GuardName } from '../handoff/guards.js';

export interface Sampling {
  /** 0: greedy. */
  readonly temperature: number;
  readonly seed: number;
  readonly maxTokens: number;
  readonly ignoreEos: boolean;
}

export type Payload =
  /** With a start to prefill. */
  | {
      readonly kind: 'prompt';
      readonly prompt: Int32Array;
      readonly salt: string;
      readonly sampling: Sampling;
    }
  /** With a start to decode. The prompt's last token is fed first where a handle replaces the transfer. */
  | {
      readonly kind: 'output';
      readonly prompt: Int32Array;
      readonly salt: string;
      readonly sampling: Sampling;
      readonly handle: string | null;
    }
  /** With a lease: the right to write, like RDMA's rkey. */
  | { readonly kind: 'registration'; readonly handle: number }
  /** With a completion: the first token, and the checksum over the checksums of all pages. */
  | {
      readonly kind: 'completion';
      readonly firstToken: number;
      readonly low: number;
      readonly high: number;
      /** Tokens of the prompt that prefill found in its own sealed pages. */
      readonly cachedTokens: number;
    }
  /** With `started`. */
  | { readonly kind: 'cached'; readonly tokens: number }
  /** With the end of an attempt at decode. */
  | { readonly kind: 'output-end'; readonly finishReason: 'stop' | 'length'; readonly completionTokens: number };

export interface ProtocolMessage {
  readonly kind: 'protocol';
  /** As `handoff/messages.ts` lays it out. */
  readonly event: Int32Array;
  readonly payload: Payload | null;
}

export type ToPrefill =
  | ProtocolMessage
  /** Decode lives again with a new pool. */
  | { readonly kind: 'decode-down'; readonly incarnation: number; readonly target: DecodeTarget };

export type ToDecode =
  | ProtocolMessage
  | { readonly kind: 'prefill-down'; readonly incarnation: number }
  /** The reader has taken so many tokens. */
  | { readonly kind: 'acknowledge'; readonly slot: number; readonly attempt: number; readonly tokens: number };

export type ToGateway =
  | ProtocolMessage
  | { readonly kind: 'token'; readonly slot: number; readonly attempt: number; readonly id: number }
  | { readonly kind: 'guard-hit'; readonly guard: GuardName; readonly slot: number; readonly words: string }
  /** A write that no lease explains. */
  | { readonly kind: 'sweep'; readonly words: string }
  | { readonly kind: 'alarm'; readonly slot: number; readonly attempt: number };

/** What prefill needs to reach decode's pool. */
export interface DecodeTarget {
  readonly incarnation: number;
  readonly buffer: SharedArrayBuffer;
  readonly base: number;
  readonly pages: number;
  readonly registrations: SharedArrayBuffer;
}

/** Where a node sends. In one thread these are queues; between threads, ports. */
export interface NodePorts {
  toGateway(message: ToGateway): void;
  toPrefill(message: ToPrefill): void;
  toDecode(message: ToDecode): void;
}

/** What one turn of a node left to do. */
export interface Turn {
  /** More work is there now. */
  readonly busy: boolean;
  /** Work comes at this time; null: only a message brings more. */
  readonly wakeAtMs: number | null;
}
