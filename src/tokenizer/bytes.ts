/**
 * The lab model's tokenizer: one byte, one token. Ids 0 to 255 are bytes; the three specials are never added to a prompt, and
 * no text encodes to them.
 */
export const TOKEN_BOS = 256;
export const TOKEN_EOS = 257;
export const TOKEN_PAD = 258;
export const VOCAB_SIZE = 259;

const encoder = new TextEncoder();

/** The UTF-8 bytes of `text` as token ids. A lone surrogate becomes U+FFFD, as UTF-8 demands. */
export function encode(text: string): Int32Array {
  return Int32Array.from(encoder.encode(text));
}

/** How many tokens `encode` would give, without making them. */
export function countTokens(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

/** The text of whole answers; specials have none. */
export function decode(ids: Iterable<number>): string {
  const decoder = new TokenDecoder();
  let text = '';
  for (const id of ids) text += decoder.push(id);
  return text + decoder.end();
}

/**
 * Tokens to text as they come. Only whole characters leave: the bytes of a character that is not complete are held back (at
 * most three), and bytes that cannot become one leave as U+FFFD. A byte order mark is a character like any other.
 */
export class TokenDecoder {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #byte = new Uint8Array(1);

  /** What `id` completes; often one character, sometimes none. Specials give nothing. */
  push(id: number): string {
    if (id < 0 || id > 255) return '';
    this.#byte[0] = id;
    return this.#decoder.decode(this.#byte, { stream: true });
  }

  /** The end of the answer: a held-back beginning leaves as U+FFFD. The decoder may be used again. */
  end(): string {
    return this.#decoder.decode();
  }
}

export interface ChatMessage {
  readonly role: string;
  readonly content: string;
}

/** The lab model's chat template: a line for each message, then the beginning of the answer. */
export function renderChat(messages: readonly ChatMessage[]): string {
  let text = '';
  for (const message of messages) text += `${message.role}: ${message.content}\n`;
  return `${text}assistant: `;
}
