import { type AskEngine, answeredJson, countedThere, replyCount } from '../counted-there.js';
import { asShape, field } from '../shapes.js';
import type { Prompt, PromptCount } from '../upstream.js';

/** Counts by the engine's own `/tokenize`, which renders the template, checks no length and looks at no pool. */
export function countByVllm(ask: AskEngine, model: string): (prompt: Prompt) => PromptCount {
  return (prompt) =>
    countedThere(async () => {
      const reply = asShape(answeredJson(await ask('/tokenize', tokenizeBody(model, prompt))));
      return replyCount(reply === null ? null : field(reply, 'count'));
    });
}

/** As the two routes of the API tokenise: a text with the model's special tokens, a chat with its template and nothing more. */
function tokenizeBody(model: string, prompt: Prompt): Record<string, unknown> {
  return prompt.kind === 'text'
    ? { model, prompt: prompt.text, add_special_tokens: true }
    : { model, messages: prompt.messages, add_generation_prompt: true, add_special_tokens: false };
}
