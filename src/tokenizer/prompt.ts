/** What is counted, and what counting answers. */

export interface TextPrompt {
  readonly kind: 'text';
  /** Counted with the special tokens that the engine puts before or after it. */
  readonly text: string;
}

/** Must not be changed once it was given to a counter: what it renders to is kept with it. */
export interface ChatPrompt {
  readonly kind: 'chat';
  /** As they came in the request: content a string, nothing, or parts. */
  readonly messages: readonly object[];
  /** As the engine hands them to its template; absent and empty are alike. */
  readonly tools?: readonly object[];
  /** Further variables for the template (`chat_template_kwargs`); they win over `add_generation_prompt: true`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

export type Prompt = TextPrompt | ChatPrompt;

/** No number is known here. Whoever gets this asks the engine. */
export interface Uncountable {
  readonly kind: 'uncountable';
  /** For operators and tenants: in words, with nothing of the prompt. */
  readonly why: string;
}

/** Numbers that the exact count lies between, both included. */
export interface Bounds {
  readonly kind: 'bounds';
  readonly least: number;
  /** Infinite where no bound is known. */
  readonly most: number;
}

export function uncountable(why: string): Uncountable {
  return { kind: 'uncountable', why };
}
