/** What OpenAI's answers hold besides plain text, written as JSON: deltas of a stream, and the parts of a whole message. */
/** A token with its natural-log probability, and the likeliest at its place. */
export interface LogprobRow {
  readonly token: string;
  readonly logprob: number;
  readonly top: readonly { readonly token: string; readonly logprob: number }[];
}

export interface ToolCallRow {
  readonly id: string;
  readonly name: string;
  /** A JSON text. */
  readonly arguments: string;
}

/** The parts of a whole answer besides its text. */
export interface AnswerRest {
  readonly reasoning: string;
  readonly refusal: string;
  readonly toolCalls: readonly ToolCallRow[];
  /** Null: not asked for. */
  readonly logprobs: readonly LogprobRow[] | null;
}

/** The word under which reasoning leaves, whatever the engine calls it: what most clients read. */
export function reasoningDelta(text: string): string {
  return `{"reasoning_content":${JSON.stringify(text)}}`;
}

export function refusalDelta(text: string): string {
  return `{"refusal":${JSON.stringify(text)}}`;
}

/** `id` and `name` go with the first piece of a call; null after it. */
export function toolCallDelta(index: number, id: string | null, name: string | null, args: string): string {
  const head = id === null ? '' : `,"id":${JSON.stringify(id)},"type":"function"`;
  const named = name === null ? '' : `"name":${JSON.stringify(name)},`;
  return `{"tool_calls":[{"index":${index}${head},"function":{${named}"arguments":${JSON.stringify(args)}}}]}`;
}

function toolCallJson({ id, name, arguments: args }: ToolCallRow): string {
  return `{"id":${JSON.stringify(id)},"type":"function","function":{"name":${JSON.stringify(name)},"arguments":${JSON.stringify(args)}}}`;
}

/** The message of a whole answer. Its content is null where only calls are in it, as OpenAI's is. */
export function messageJson(text: string, rest: AnswerRest): string {
  const { reasoning, refusal, toolCalls } = rest;
  const content = text === '' && (toolCalls.length > 0 || refusal !== '') ? 'null' : JSON.stringify(text);
  const calls = toolCalls.length === 0 ? '' : `,"tool_calls":[${toolCalls.map(toolCallJson).join(',')}]`;
  const thought = reasoning === '' ? '' : `,"reasoning_content":${JSON.stringify(reasoning)}`;
  return `{"role":"assistant","content":${content},"refusal":${refusal === '' ? 'null' : JSON.stringify(refusal)}${thought}${calls}}`;
}

/**
 * The `logprobs` of a choice; null where none were asked for. `textOffset`: characters of text before the first row, which the older
 * route says of each token.
 */
export function logprobsJson(isChat: boolean, rows: readonly LogprobRow[] | null, textOffset: number): string {
  if (rows === null) return 'null';
  if (isChat) return `{"content":[${rows.map(chatRowJson).join(',')}],"refusal":null}`;
  let offset = textOffset;
  const offsets = rows.map(({ token }) => {
    offset += token.length;
    return offset - token.length;
  });
  const tops = rows.map(({ top }) => Object.fromEntries(top.map((each) => [each.token, each.logprob])));
  return JSON.stringify({
    tokens: rows.map(({ token }) => token),
    token_logprobs: rows.map(({ logprob }) => logprob),
    top_logprobs: rows.some(({ top }) => top.length > 0) ? tops : null,
    text_offset: offsets,
  });
}

function chatRowJson(row: LogprobRow): string {
  return JSON.stringify({ ...tokenJson(row), top_logprobs: row.top.map(tokenJson) });
}

/** A token that is a part of a character comes as a replacement character; its bytes are not known then. */
function tokenJson({ token, logprob }: { readonly token: string; readonly logprob: number }): Record<string, unknown> {
  return { token, logprob, bytes: token.includes('\ufffd') ? null : [...Buffer.from(token, 'utf8')] };
}
