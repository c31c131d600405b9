/** The lab model's tokenizer in the words of other engines: GPT-2's alphabet for bytes, three specials, a chat template. */
import { TOKEN_BOS, TOKEN_EOS, TOKEN_PAD, VOCAB_SIZE } from '../../tokenizer/bytes.js';

export const SPECIAL_TOKENS: Readonly<Record<'bos' | 'eos' | 'pad', { readonly id: number; readonly text: string }>> = {
  bos: { id: TOKEN_BOS, text: '<s>' },
  eos: { id: TOKEN_EOS, text: '</s>' },
  pad: { id: TOKEN_PAD, text: '<pad>' },
};

/** Bytes that GPT-2's alphabet shows as themselves: what Latin-1 prints, but for the space and the soft hyphen. */
function showsAsItself(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte !== 0xad);
}

/** The character of each byte: itself, or the next free one from U+0100 on. */
export function byteCharacters(): string[] {
  let free = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(showsAsItself(byte) ? byte : free++));
}

/** The text of each token, by id. */
export function vocabulary(): string[] {
  const texts = byteCharacters();
  for (const { id, text } of Object.values(SPECIAL_TOKENS)) texts[id] = text;
  if (texts.length !== VOCAB_SIZE) throw new Error(`the vocabulary has ${texts.length} tokens, not ${VOCAB_SIZE}`);
  return texts;
}

/** Jinja; gives what `renderChat` gives when an answer is asked for. The line's end is in a string, where no option of Jinja trims it. */
export const CHAT_TEMPLATE: string = [
  '{% for message in messages %}',
  "{{ message['role'] + ': ' + message['content'] + '\\n' }}",
  '{% endfor %}',
  "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}",
].join('');
