import { Counter, Gauge, type Registry } from 'prom-client';
import type { ShieldOutcome } from './shield.js';
import type { OutReason, SentinelOutcome } from './rotation.js';
import type { Verdict } from './verdict.js';

/** What was noticed about the answers of one engine, and what was done about it. */
export interface EngineSafety {
  doubted(verdict: Exclude<Verdict, 'agrees'> | 'foreign-marker'): void;
  sentinel(outcome: SentinelOutcome): void;
  /** What sentinels cost: tokens of prompts that were sent, and of output that came. */
  sentinelTokens(prompt: number, output: number): void;
  out(reason: OutReason): void;
  back(): void;
}

/** What was noticed about answers, and what was done about the engines: counts for Prometheus. */
export class SafetyMetrics {
  readonly #doubted: Counter;
  readonly #sentinels: Counter;
  readonly #sentinelTokens: Counter;
  readonly #outs: Counter;
  readonly #inRotation: Gauge;
  readonly #shielded: Counter;
  readonly #shieldedTokens: Counter;
  readonly #shieldedSeconds: Counter;
  #shieldedCount = 0;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#doubted = new Counter({
      name: 'cofferdam_answers_doubted_total',
      help: 'Answers that were withheld because of what an engine said or sent, by what was wrong',
      labelNames: ['engine', 'verdict'],
      registers,
    });
    this.#sentinels = new Counter({
      name: 'cofferdam_sentinels_total',
      help: 'Sentinel requests that the gateway sent, self-tests included, by outcome',
      labelNames: ['engine', 'outcome'],
      registers,
    });
    this.#outs = new Counter({
      name: 'cofferdam_rotation_exits_total',
      help: 'How often an engine left rotation, by reason',
      labelNames: ['engine', 'reason'],
      registers,
    });
    this.#inRotation = new Gauge({
      name: 'cofferdam_in_rotation',
      help: '1: the engine serves; 0: it is out',
      labelNames: ['engine'],
      registers,
    });
    this.#sentinelTokens = new Counter({
      name: 'cofferdam_sentinel_tokens_total',
      help: 'What sentinels cost: tokens of their prompts, and of the output that came',
      labelNames: ['engine', 'kind'],
      registers,
    });
    const shielded = (what: string, help: string): Counter =>
      new Counter({ name: `cofferdam_shielded_${what}_total`, help, labelNames: ['outcome'], registers });
    this.#shielded = shielded('requests', 'Requests whose client left before the first token, by what became of them');
    this.#shieldedTokens = shielded('prompt_tokens', 'Tokens of the prompts of shielded requests');
    this.#shieldedSeconds = shielded('seconds', 'Time that shielded requests went on without a client');
  }

  /** Requests that were shielded since the start, open ones not included. */
  get shieldedCount(): number {
    return this.#shieldedCount;
  }

  shielded(outcome: ShieldOutcome, promptTokens: number, ms: number): void {
    this.#shieldedCount++;
    this.#shielded.inc({ outcome });
    this.#shieldedTokens.inc({ outcome }, promptTokens);
    this.#shieldedSeconds.inc({ outcome }, ms / 1000);
  }

  /** A client left past its tenant's bound. */
  shieldRefused(): void {
    this.#shielded.inc({ outcome: 'over_bound' });
  }

  /** The part of the engine of that name, which is in rotation now. */
  of(engine: string): EngineSafety {
    this.#inRotation.set({ engine }, 1);
    return {
      doubted: (verdict) => this.#doubted.inc({ engine, verdict }),
      sentinel: (outcome) => this.#sentinels.inc({ engine, outcome }),
      sentinelTokens: (prompt, output) => {
        this.#sentinelTokens.inc({ engine, kind: 'prompt' }, prompt);
        this.#sentinelTokens.inc({ engine, kind: 'output' }, output);
      },
      out: (reason) => {
        this.#outs.inc({ engine, reason });
        this.#inRotation.set({ engine }, 0);
      },
      back: () => this.#inRotation.set({ engine }, 1),
    };
  }
}
