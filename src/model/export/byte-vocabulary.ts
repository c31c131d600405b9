/** The lab model's tokenizer in the words of other engines: GPT-2's alphabet for bytes, three specials, a chat template. */
import { byteCharacters } from '../../tokenizer/byte-alphabet.js';
import { TOKEN_BOS, TOKEN_EOS, TOKEN_PAD, VOCAB_SIZE } from '../../tokenizer/bytes.js';

export const SPECIAL_TOKENS: Readonly<Record<'bos' | 'eos' | 'pad', { readonly id: number; readonly text: string }>> = {
  bos: { id: TOKEN_BOS, text: '<s>' },
  eos: { id: TOKEN_EOS, text: '</s>' },
  pad: { id: TOKEN_PAD, text: '<pad>' },
};

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
