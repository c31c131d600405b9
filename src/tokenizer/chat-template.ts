/** A chat as the text that the engine would make of it. What cannot be rendered with certainty gives a reason, not a text. */
import type { Clock } from '../base/clock.js';
import { loopsOverContent, type Program, parseTemplate, renderTemplate } from './jinja.js';
import { hasUncertainNumber, parseArguments } from './python-numbers.js';
import { type ChatPrompt, type Uncountable, uncountable } from './prompt.js';

/** The templates that come with a tokenizer. */
export interface ChatTemplates {
  readonly plain: string;
  /** Used where the request has tools; null: `plain` serves for both. */
  readonly withTools: string | null;
}

export interface ChatTemplateOptions {
  readonly templates: ChatTemplates;
  /** `bos_token` and its like. */
  readonly specials: Readonly<Record<string, string>>;
  /** Between the text parts of one content, for a template that takes one text (vLLM: a line's end, SGLang: a space). */
  readonly partSeparator: string;
  readonly clock: Clock;
}

interface Parsed {
  readonly program: Program;
  readonly takesParts: boolean;
}

type Fields = Record<string, unknown>;

/** Thrown for what is not text, or not certain; the message is the reason. */
class CannotRender extends Error {}

export class ChatTemplate {
  readonly #options: ChatTemplateOptions;
  readonly #plain: Parsed;
  readonly #withTools: Parsed;

  /** Throws an `Error` where a template is no Jinja that is understood. */
  constructor(options: ChatTemplateOptions) {
    this.#options = options;
    this.#plain = parsed(options.templates.plain);
    this.#withTools = options.templates.withTools === null ? this.#plain : parsed(options.templates.withTools);
  }

  render(prompt: ChatPrompt): string | Uncountable {
    const tools = prompt.tools?.length ? prompt.tools : null;
    const { program, takesParts } = tools === null ? this.#plain : this.#withTools;
    try {
      if (hasUncertainNumber(tools) || hasUncertainNumber(prompt.variables)) throw new CannotRender(NUMBERS);
      const variables = {
        ...this.#options.specials,
        messages: prompt.messages.map((message) => readMessage(message, takesParts, this.#options.partSeparator)),
        tools,
        documents: null,
        add_generation_prompt: true,
        ...prompt.variables,
      };
      return renderTemplate(program, variables, this.#options.clock);
    } catch (thrown) {
      // What the library or the template says may hold words of the prompt.
      const known = thrown instanceof CannotRender;
      return uncountable(known ? thrown.message : 'the chat template does not take these messages');
    }
  }
}

const NUMBERS = 'a number that the engine may write otherwise';

function parsed(template: string): Parsed {
  const program = parseTemplate(template);
  return { program, takesParts: loopsOverContent(program.body) };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A message as engines hand it to a template: content one text or a list of text parts, arguments of tool calls as objects. */
function readMessage(message: object, takesParts: boolean, separator: string): Fields {
  if (!isFields(message)) throw new CannotRender('a message that is no object');
  const { content, tool_calls: calls, ...rest } = message;
  if (hasUncertainNumber(rest)) throw new CannotRender(NUMBERS);
  const read: Fields = { ...message, content: readContent(content, takesParts, separator) };
  if (Array.isArray(calls)) read.tool_calls = calls.map(readCall);
  return read;
}

function readContent(content: unknown, takesParts: boolean, separator: string): string | Fields[] {
  if (typeof content === 'string') return content;
  if (content === null || content === undefined) return '';
  if (!Array.isArray(content)) throw new CannotRender('a content that is neither text nor parts');
  const texts = content.map((part: unknown) => {
    const text = isFields(part) && part.type === 'text' ? part.text : part;
    if (typeof text !== 'string') throw new CannotRender('a part that is not text');
    return text;
  });
  return takesParts ? texts.map((text) => ({ type: 'text', text })) : texts.join(separator);
}

function readCall(call: unknown): unknown {
  if (!isFields(call) || !isFields(call.function)) throw new CannotRender('a tool call without a function');
  const { arguments: given } = call.function;
  if (given !== undefined && given !== null && typeof given !== 'string' && hasUncertainNumber(given)) {
    throw new CannotRender(NUMBERS);
  }
  const read = typeof given === 'string' ? parseArguments(given) : (given ?? {});
  if (read === undefined) throw new CannotRender('arguments of a tool call that the engine may read otherwise');
  return { ...call, function: { ...call.function, arguments: read } };
}
