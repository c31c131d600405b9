/** Texts from outside inside XML and HTML. */

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

/** For text and for attributes in quotes, in HTML as in XML. The text has no control characters any more. */
export function escapeMarkup(text: string): string {
  return text.replace(/[&<>"'`]/g, (char) => ENTITIES[char]!);
}

/** The same, with what stands between two backticks as code: flags and fields are written so. */
export function escapeWithCode(text: string): string {
  const parts = text.split('`');
  const closed = parts.length % 2 === 1 ? parts.length : parts.length - 1;
  return parts
    .map((part, index) => {
      const words = escapeMarkup(part);
      if (index >= closed) return `&#96;${words}`;
      return index % 2 === 1 ? `<code>${words}</code>` : words;
    })
    .join('');
}

/** An address that a reader may follow: http or https, without a name and password. Null for anything else. */
export function safeLink(text: string): string | null {
  if (!/^https?:\/\//.test(text)) return null;
  try {
    const url = new URL(text);
    return url.username === '' && url.password === '' ? url.href : null;
  } catch {
    return null;
  }
}
