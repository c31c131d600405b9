/** Who takes part in a driven counterexample: a request of tokens for each of the checker's, and one before all of them. */
import type { EngineOptions } from '../engine/config.js';
import type { Counterexample, CounterexampleRequest } from '../handoff/counterexample.js';
import type { Marker } from '../markers/marker.js';
import type { EngineEnd, EngineRequest, EngineRun, EngineSink } from './engine-types.js';
import { Prompts } from './prompts.js';
import { colliding } from './scenarios/prefix-hash-collision.js';

/** One page of the checker is one page and one chunk here. */
const PAGE_TOKENS = 256;
/** Where first pages are sealed and shared, it is a page that is full, and one behind it for what is not shared: one chunk together. */
const SHARED_PAGE_TOKENS = 128;
/** Room for the answer in the last page of a prompt. */
const OUTPUT_TOKENS = 56;
/** How keys are announced in notes like the other tenants'. */
const CUE = ' key is ';
/** Of the tenant that was there before; those of a counterexample are 1 to 3. */
const EARLIER_TENANT = 4;

export class Part {
  /** `A`, `B`, …, or who was there before. */
  readonly name: string;
  readonly tenant: number;
  readonly prompt: string;
  readonly maxTokens: number;
  readonly handle: string | null;
  /** Synthetic, in its prompt; null: it has none. */
  readonly marker: Marker | null;
  slot = -1;
  /** Its first attempt. */
  attempt = 0;
  run: EngineRun | null = null;
  end: EngineEnd | null = null;
  isReleased = false;
  readonly tokens: number[] = [];

  constructor(
    name: string,
    tenant: number,
    prompt: string,
    maxTokens: number,
    marker: Marker | null,
    handle: string | null,
  ) {
    this.name = name;
    this.tenant = tenant;
    this.prompt = prompt;
    this.maxTokens = maxTokens;
    this.marker = marker;
    this.handle = handle;
  }

  get request(): EngineRequest {
    const { tenant, prompt, maxTokens, handle } = this;
    const salt = String(tenant).repeat(64);
    const ids = Int32Array.from(prompt, (character) => character.charCodeAt(0));
    return { tenant, salt, prompt: ids, maxTokens, temperature: 0, seed: 1, room: null, handle };
  }

  get sink(): EngineSink {
    return {
      started: () => {},
      token: (id) => {
        this.tokens.push(id);
        this.run?.acknowledge(this.tokens.length);
      },
      end: (end) => {
        this.end = end;
      },
      released: () => {
        this.isReleased = true;
      },
    };
  }

  get text(): string {
    return String.fromCharCode(...this.tokens.map((id) => (id < 128 ? id : 0)));
  }
}

export class Cast {
  readonly sizes: EngineOptions;
  /** Pages here for one of the checker's. */
  readonly scale: number;
  readonly #found: Counterexample;
  readonly #prompts: Prompts;
  readonly #shared = new Map<number, string>();
  readonly #victim: number;
  #markers = 0;

  /** `victim`: the index of the request that the counterexample ends with. */
  constructor(found: Counterexample, victim: number, seed: number) {
    this.#found = found;
    this.#victim = victim;
    this.#prompts = new Prompts(seed);
    const { prefixes, prefillPages, decodePages, slots } = found.world;
    this.scale = prefixes ? 2 : 1;
    const pageTokens = prefixes ? SHARED_PAGE_TOKENS : PAGE_TOKENS;
    const decodePool = decodePages * this.scale * pageTokens;
    const prefillPool = prefillPages * this.scale * pageTokens;
    this.sizes = {
      pageTokens,
      prefillPool,
      decodePool,
      context: decodePool,
      runningMax: slots,
      prefixCache: prefixes,
      seed,
    };
  }

  get markers(): readonly Marker[] {
    return this.#prompts.markers;
  }

  #noteOf(tokens: number): { prompt: string; marker: Marker | null } {
    return { prompt: this.#prompts.acme(tokens), marker: this.#prompts.markers[this.#markers++] ?? null };
  }

  /** Another tenant's request that leaves its text in all of decode's pages; null: the pages of this counterexample are sealed ones. */
  earlier(): Part | null {
    const { prefixes, decodePages } = this.#found.world;
    if (prefixes) return null;
    // One chunk, of which no fault makes less; its answer repeats its text into the other pages.
    const tokens = PAGE_TOKENS - OUTPUT_TOKENS;
    const { prompt, marker } = this.#noteOf(tokens);
    return new Part('an earlier request', EARLIER_TENANT, prompt, decodePages * PAGE_TOKENS - tokens, marker, null);
  }

  /** `handle`: what the fault `stale-handle` sends along. */
  part(index: number, handle: string | null): Part {
    const request = this.#found.world.requests[index] as CounterexampleRequest;
    const name = String.fromCharCode(65 + index);
    const { prompt, marker } = this.#found.world.prefixes ? this.#sharing(index, request) : this.#own(index, request);
    return new Part(name, request.tenant, prompt, OUTPUT_TOKENS, marker, handle);
  }

  #own(index: number, { pages }: CounterexampleRequest): { prompt: string; marker: Marker | null } {
    const tokens = pages * PAGE_TOKENS - OUTPUT_TOKENS;
    return index === this.#victim ? { prompt: this.#prompts.globex(tokens), marker: null } : this.#noteOf(tokens);
  }

  /** Prompts whose first pages hash alike: the same text or, for a weak hash, another that collides. */
  #sharing(index: number, { hash }: CounterexampleRequest): { prompt: string; marker: Marker | null } {
    const rest = SHARED_PAGE_TOKENS - OUTPUT_TOKENS;
    const isVictim = index === this.#victim;
    const first = this.#shared.get(hash);
    if (this.#found.fault === 'prefix-hash-collision' && isVictim && first !== undefined) {
      const beginning = colliding(this.#prompts.globex(SHARED_PAGE_TOKENS), first);
      return { prompt: beginning + this.#prompts.globex(rest - CUE.length) + CUE, marker: null };
    }
    const isSecret = this.#found.fault === 'prefix-hash-collision';
    const note = isSecret
      ? this.#noteOf(SHARED_PAGE_TOKENS)
      : { prompt: this.#prompts.globex(SHARED_PAGE_TOKENS), marker: null };
    const shared = first ?? note.prompt;
    this.#shared.set(hash, shared);
    if (isSecret || isVictim)
      return { prompt: shared + this.#prompts.globex(rest), marker: isSecret ? note.marker : null };
    const own = this.#noteOf(rest);
    return { prompt: shared + own.prompt, marker: own.marker };
  }
}
