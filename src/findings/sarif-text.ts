/**
 * A text from outside as a SARIF message (3.11). Braces are doubled, or `{0}` would be a placeholder; brackets get a backslash,
 * or `[words](address)` would be a link, in SARIF's plain text as in Markdown; and what Markdown would take for HTML or for an
 * address of its own is parted.
 */
export function messageText(text: string): string {
  return text
    .replace(/[{}]/g, (brace) => brace + brace)
    .replace(/(\\*)([[\]])/g, (_all, slashes: string, bracket: string) => `${slashes}${slashes}\\${bracket}`)
    .replace(/<(?=[a-z/!?])/gi, '< ')
    .replace(/(?<=^|[^a-z])(javascript|vbscript|data):(?=\S)/gi, '$1 :');
}
