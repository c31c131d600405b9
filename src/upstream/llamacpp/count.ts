import { type AskEngine, answeredJson, cannotCount, countedThere, countsTextOnly } from '../counted-there.js';
import { asShape, field } from '../shapes.js';
import type { Prompt, PromptCount } from '../upstream.js';

/** Counts by the server itself: `/apply-template` renders a chat, `/tokenize` gives the ids, special tokens and all. */
export function countByLlama(ask: AskEngine): (prompt: Prompt) => PromptCount {
  return (prompt) => {
    if (prompt.kind === 'chat' && prompt.rich?.hasData === true) throw countsTextOnly();
    return countedThere(async () => {
      const content = prompt.kind === 'text' ? prompt.text : await rendered(ask, prompt);
      const reply = asShape(answeredJson(await ask('/tokenize', { content, add_special: true, parse_special: true })));
      const tokens = reply === null ? null : field(reply, 'tokens');
      if (!Array.isArray(tokens)) throw cannotCount();
      return tokens.length;
    });
  };
}

/** With every field that the route of chats would render with, since both render in the same way. */
async function rendered(ask: AskEngine, { messages, rich }: Extract<Prompt, { kind: 'chat' }>): Promise<string> {
  const body =
    rich === undefined
      ? { messages }
      : { ...rich.fields, messages: rich.messages, ...(rich.tools.length === 0 ? {} : { tools: rich.tools }) };
  const reply = asShape(answeredJson(await ask('/apply-template', body)));
  const prompt = reply === null ? null : field(reply, 'prompt');
  if (typeof prompt !== 'string') throw cannotCount();
  return prompt;
}
