import { type AskEngine, answeredJson, cannotCount, countedThere } from '../counted-there.js';
import { asShape, field } from '../shapes.js';
import type { Prompt, PromptCount } from '../upstream.js';

/** Counts by the server itself: `/apply-template` renders a chat, `/tokenize` gives the ids, special tokens and all. */
export function countByLlama(ask: AskEngine): (prompt: Prompt) => PromptCount {
  return (prompt) =>
    countedThere(async () => {
      const content = prompt.kind === 'text' ? prompt.text : await rendered(ask, prompt.messages);
      const reply = asShape(answeredJson(await ask('/tokenize', { content, add_special: true, parse_special: true })));
      const tokens = reply === null ? null : field(reply, 'tokens');
      if (!Array.isArray(tokens)) throw cannotCount();
      return tokens.length;
    });
}

async function rendered(ask: AskEngine, messages: unknown): Promise<string> {
  const reply = asShape(answeredJson(await ask('/apply-template', { messages })));
  const prompt = reply === null ? null : field(reply, 'prompt');
  if (typeof prompt !== 'string') throw cannotCount();
  return prompt;
}
