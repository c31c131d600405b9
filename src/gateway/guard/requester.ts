import { HIT_CHARACTERS_MIN, type MarkerHit } from '../../markers/marker-index.js';
import type { Prompt } from '../../upstream/upstream.js';
import { withoutEscapes } from './escapes.js';

/** Whose answer it is, and what the request held: what stands in it is no secret from its sender. */
export class Requester {
  readonly owner: string;
  readonly #prompt: Prompt;
  /** Looked at only where a marker was met. */
  #texts: readonly string[] | null = null;

  constructor(owner: string, prompt: Prompt) {
    this.owner = owner;
    this.#prompt = prompt;
  }

  /** Also where the request has a part of the stretch: any twelve characters that it has not came from elsewhere. */
  isForeign({ marker, markerOffset, length }: MarkerHit): boolean {
    if (marker.owner === this.owner) return false;
    this.#texts ??= textsOf(this.#prompt);
    for (let at = markerOffset; at + HIT_CHARACTERS_MIN <= markerOffset + length; at++) {
      const stretch = marker.text.slice(at, at + HIT_CHARACTERS_MIN);
      if (!this.#texts.some((text) => text.includes(stretch))) return true;
    }
    return false;
  }
}

/** Every text of a prompt, tools and earlier calls included, as it came and without escapes. */
function textsOf(prompt: Prompt): string[] {
  const texts: string[] = [];
  if (prompt.kind === 'text') texts.push(prompt.text);
  else {
    for (const { content } of prompt.messages) texts.push(content);
    if (prompt.rich !== undefined) collect([prompt.rich.messages, prompt.rich.tools, prompt.rich.fields], texts);
  }
  return texts.flatMap((text) => (text.includes('\\') ? [text, withoutEscapes(text)] : [text]));
}

/** The strings of a value of bounded depth, names included. */
function collect(value: unknown, texts: string[]): void {
  if (typeof value === 'string') texts.push(value);
  else if (Array.isArray(value)) for (const each of value) collect(each, texts);
  else if (typeof value === 'object' && value !== null) {
    for (const [name, each] of Object.entries(value)) {
      texts.push(name);
      collect(each, texts);
    }
  }
}
