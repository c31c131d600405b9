/** Small strict readers of XML and of our HTML, for tests: whatever is not well formed is an error. */
import assert from 'node:assert/strict';

export interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: Element[];
  text: string;
}

/** Elements of HTML that have no end tag. */
const VOID = new Set(['meta', 'br']);
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#96': '`' };

function decode(text: string): string {
  assert.doesNotMatch(text, /&(?!(?:amp|lt|gt|quot|#39|#96);)/, 'an ampersand that starts no entity');
  return text.replace(/&([a-z0-9#]+);/g, (_all, name: string) => ENTITIES[name]!);
}

function readAttributes(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  const rest = text.replace(/\s+([a-zA-Z][a-zA-Z-]*)="([^"<>]*)"/g, (_all, name: string, value: string) => {
    assert.ok(!Object.hasOwn(attributes, name), `the attribute ${name} stands twice`);
    attributes[name] = decode(value);
    return '';
  });
  assert.equal(rest.trim(), '', `attributes that are not well formed: ${text}`);
  return attributes;
}

/** One root element, after the prolog (`<?xml …?>` or `<!DOCTYPE html>`). The content of `style` is taken as it is. */
export function readMarkup(source: string): Element {
  assert.doesNotMatch(source, /[\u0000-\u0008\u000b-\u001f\ufffe\uffff]|\p{Cs}/u, 'a character that XML does not have');
  const body = source.replace(/^(?:<\?xml version="1\.0" encoding="UTF-8"\?>|<!DOCTYPE html>)\n/, '');
  const root: Element = { name: '', attributes: {}, children: [], text: '' };
  const open: Element[] = [root];
  const token = /<style>([^<]*)<\/style>|<(\/?)([a-zA-Z][a-zA-Z0-9-]*)((?:\s+[^<>]*?)?)(\/?)>|([^<]+)/gy;
  while (token.lastIndex < body.length) {
    const at = token.lastIndex;
    const match = token.exec(body);
    assert.ok(match !== null, `not well formed at ${at}: ${body.slice(at, at + 60)}`);
    const [, style, end, name, attributes, closed, text] = match;
    const parent = open.at(-1)!;
    if (style !== undefined) parent.children.push({ name: 'style', attributes: {}, children: [], text: style });
    else if (text !== undefined) parent.text += decode(text);
    else if (end === '/') {
      assert.equal(open.pop()?.name, name, `an end tag at ${at} that closes nothing`);
    } else {
      const element: Element = { name: name!, attributes: readAttributes(attributes!), children: [], text: '' };
      parent.children.push(element);
      if (closed !== '/' && !VOID.has(name!)) open.push(element);
    }
  }
  assert.equal(open.length, 1, `${open.at(-1)?.name} is not closed`);
  assert.equal(root.children.length, 1, 'more than one root');
  return root.children[0]!;
}

export function* elementsOf(element: Element): Generator<Element> {
  yield element;
  for (const child of element.children) yield* elementsOf(child);
}

/** All text below an element. */
export function textOf(element: Element): string {
  return [...elementsOf(element)].map(({ text }) => text).join(' ');
}

/** The names of all elements in order, without those in `but`. */
export function shapeOf(element: Element, but: readonly string[] = []): string[] {
  return [...elementsOf(element)].map(({ name }) => name).filter((name) => !but.includes(name));
}
