/** The tenants of a simulated world and their prompts: each token of a request's own content names the request. */
import type { Prng } from '../base/prng.js';
import { openAccount, type TenantAccount } from '../gateway/waiting.js';
import type { Plan } from './plan.js';

/** Tokens of a request's own content begin here: each names its owner. Below are the texts that prompts share. */
const OWN_TOKENS = 4096;
/** Texts that prompts begin with: the first two anybody's, the others one tenant's each. */
const TEXTS_OF_ALL = 2;
/** A text's number times this is added to its tokens: all texts are the same to a hash that sums modulo 97. */
const TEXT_STRIDE = 97;
/** Prompts that a tenant sends once more, of 65536; of the last few. */
const SAME_AGAIN = 6000;
const REMEMBERED = 8;

export interface Content {
  /** Names the content in its tokens: the request that brought it first. */
  readonly id: number;
  readonly tenant: Tenant;
  readonly prompt: Int32Array;
  readonly text: number;
  readonly shared: number;
  /** Requests that brought it. */
  uses: number;
}

interface Seen {
  /** Content and its tokens of the text; the second is that of another content. */
  id: number;
  tokens: number;
  others: number;
}

export interface Tenant {
  readonly account: TenantAccount;
  readonly number: number;
  readonly salt: string;
  /** By text: the two prompts of this tenant that had most of it. */
  readonly seen: Seen[];
  readonly past: Content[];
}

export class Prompts {
  readonly #plan: Plan;
  readonly #chance: Prng;
  readonly #tenants: Tenant[];

  constructor(plan: Plan, chance: Prng) {
    this.#plan = plan;
    this.#chance = chance;
    const texts = TEXTS_OF_ALL + plan.tenants;
    this.#tenants = Array.from({ length: plan.tenants }, (_, index) => {
      const salt = Array.from({ length: 8 }, () => chance.u32().toString(16).padStart(8, '0')).join('');
      const account = openAccount({ number: index + 1, name: `tenant-${index + 1}`, salt });
      return {
        account,
        number: index + 1,
        salt,
        seen: Array.from({ length: texts }, () => ({ id: -1, tokens: 0, others: 0 })),
        past: [],
      };
    });
  }

  /** The prompt of request `id`: a new one, or one that its tenant sent before. */
  draw(id: number): Content {
    const tenant = this.#chance.pick(this.#tenants);
    const isAgain = this.#chance.u32() >>> 16 < SAME_AGAIN && tenant.past.length > 0;
    return isAgain ? this.#chance.pick(tenant.past) : this.#new(id, tenant);
  }

  #new(id: number, tenant: Tenant): Content {
    const tokens = this.#chance.between(1, this.#plan.promptTokensMax);
    const isSharing = this.#chance.u32() >>> 16 < this.#plan.prefixes;
    const of = this.#chance.below(TEXTS_OF_ALL + 1);
    const text = of < TEXTS_OF_ALL ? of : TEXTS_OF_ALL + tenant.number - 1;
    const { pageTokens } = this.#plan.config;
    const whole = Math.floor((tokens - 1) / pageTokens) * pageTokens;
    const shared = isSharing && whole > 0 ? this.#chance.between(1, whole) : 0;
    const prompt = new Int32Array(tokens);
    for (let i = 0; i < tokens; i++) {
      prompt[i] = i < shared ? 1 + (i % TEXT_STRIDE) + text * TEXT_STRIDE : OWN_TOKENS + id;
    }
    return { id, tenant, prompt, text, shared, uses: 0 };
  }

  /** The request was let in: from now on others may be given what it leaves behind. */
  remember(content: Content): void {
    const { id, tenant, text, shared } = content;
    content.uses++;
    if (content.uses > 1) return;
    const seen = tenant.seen[text];
    if (seen !== undefined && shared > seen.tokens) {
      seen.others = seen.tokens;
      seen.tokens = shared;
      seen.id = id;
    } else if (seen !== undefined) seen.others = Math.max(seen.others, shared);
    tenant.past.push(content);
    if (tenant.past.length > REMEMBERED) tenant.past.shift();
  }

  /** Tokens of its prompt that other prompts of its own tenant had, up to now. */
  mayShare(content: Content): number {
    if (content.uses > 1) return content.prompt.length;
    const seen = content.tenant.seen[content.text];
    if (seen === undefined) return 0;
    return Math.min(content.shared, seen.id === content.id ? seen.others : seen.tokens);
  }
}

/** Whose content a token names, for the words of a violation. */
export function ownerWords(token: number): string {
  if (token >= OWN_TOKENS) return `content of request ${token - OWN_TOKENS}`;
  return token === 0 ? 'nothing that was ever written' : 'content that does not go on from there';
}
