import { type AskEngine, answeredJson, countedThere, countsTextOnly, replyCount } from '../counted-there.js';
import { asShape, field } from '../shapes.js';
import type { Prompt, PromptCount } from '../upstream.js';

/** Counts by the engine's own `/tokenize`, which renders the template, checks no length and looks at no pool. */
export function countByVllm(ask: AskEngine, model: string): (prompt: Prompt) => PromptCount {
  return (prompt) => {
    const body = tokenizeBody(model, prompt);
    return countedThere(async () => {
      const reply = asShape(answeredJson(await ask('/tokenize', body)));
      return replyCount(reply === null ? null : field(reply, 'count'));
    });
  };
}

/**
 * As the two routes of the API tokenise: a text with the model's special tokens, a chat with its template, its tools and nothing
 * more. Throws `invalid_request` for parts that are no text: there they are counted as if they were not there.
 */
function tokenizeBody(model: string, prompt: Prompt): Record<string, unknown> {
  if (prompt.kind === 'text') return { model, prompt: prompt.text, add_special_tokens: true };
  const { rich } = prompt;
  if (rich?.hasData === true) throw countsTextOnly();
  const effort = rich?.fields.reasoning_effort;
  return {
    model,
    messages: rich?.messages ?? prompt.messages,
    add_generation_prompt: true,
    add_special_tokens: false,
    ...(rich === undefined || rich.tools.length === 0 ? {} : { tools: rich.tools }),
    ...(effort === undefined ? {} : { chat_template_kwargs: { reasoning_effort: effort } }),
  };
}
