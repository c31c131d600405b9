/** A command line as a shell would part it, without running anything: what is computed stays unknown. */

export interface Word {
  readonly text: string;
  /** From 1, where the caller knows it. */
  readonly line?: number;
  /** It holds `$VAR`, `$(…)` or the like: its value is known only where it runs. */
  readonly computed: boolean;
}

/** Words of one command that are looked at. */
export const WORDS_MAX = 5000;
/** Characters of a text that are parted. */
export const COMMAND_CHARACTERS_MAX = 1_000_000;

/** Ends one command and begins the next. */
const ENDS: ReadonlySet<string> = new Set([';', '&', '|', '\n', '(', ')']);

const REDIRECTION = /^\d?(?:>>?|<)/;
const BARE_REDIRECTION = /^\d?(?:>>?|<)$/;

/** The commands of a shell text, each as its words. A line that ends with a backslash goes on; a `#` at a word's start ends it. */
export function parseCommands(source: string, firstLine = 1): Word[][] {
  const text = source.slice(0, COMMAND_CHARACTERS_MAX);
  const commands: Word[][] = [];
  let words: Word[] = [];
  let count = 0;
  let toFile = false;
  let line = firstLine;
  let at = 0;
  const flush = (): void => {
    if (words.length > 0) commands.push(words);
    words = [];
  };
  while (at < text.length && count < WORDS_MAX) {
    const char = text[at]!;
    if (char === '\\' && /\r?\n/y.test(text.slice(at + 1, at + 3))) {
      at = text.indexOf('\n', at) + 1;
      line++;
    } else if (ENDS.has(char)) {
      flush();
      if (char === '\n') line++;
      at++;
    } else if (/\s/.test(char)) at++;
    else if (char === '#') {
      const end = text.indexOf('\n', at);
      at = end < 0 ? text.length : end;
    } else {
      const word = readWord(text, at, line);
      // `> file`, `2>&1`: where output goes is no argument, nor is the file behind it.
      if (REDIRECTION.test(word.word.text)) toFile = BARE_REDIRECTION.test(word.word.text) && text[word.end] !== '&';
      else if (toFile) toFile = false;
      else words.push(word.word);
      line += word.breaks;
      at = word.end;
      count++;
    }
  }
  flush();
  return commands;
}

interface ReadWord {
  readonly word: Word;
  readonly end: number;
  readonly breaks: number;
}

function readWord(text: string, start: number, line: number): ReadWord {
  const parts: string[] = [];
  let computed = false;
  let breaks = 0;
  let quote = '';
  let at = start;
  for (; at < text.length; at++) {
    const char = text[at]!;
    if (char === '\n') breaks++;
    if (quote === "'") {
      if (char === "'") quote = '';
      else parts.push(char);
    } else if (char === '\\') {
      const next = text[at + 1] ?? '';
      if (next === '\n') breaks++;
      else if (quote === '' || /["\\$`]/.test(next)) parts.push(next);
      else parts.push(char, next);
      at++;
    } else if (char === '"') quote = quote === '"' ? '' : '"';
    else if (char === "'" && quote === '') quote = "'";
    else if (char === '$' || char === '`') {
      computed = true;
      const end = expansionEnd(text, at);
      parts.push(text.slice(at, end));
      at = end - 1;
    } else if (quote === '' && (/\s/.test(char) || ENDS.has(char))) {
      if (char === '\n') breaks--;
      break;
    } else parts.push(char);
  }
  return { word: { text: parts.join(''), line, computed }, end: Math.max(at, start + 1), breaks };
}

/** Where `$NAME`, `${…}`, `$(…)` or a backquoted part that begins at `start` ends; line breaks inside are not followed. */
function expansionEnd(text: string, start: number): number {
  const next = text[start + 1];
  const close = next === '{' ? '}' : next === '(' ? ')' : text[start] === '`' ? '`' : '';
  if (close !== '') {
    const end = text.indexOf(close, start + 1);
    const lineEnd = text.indexOf('\n', start);
    return end < 0 || (lineEnd >= 0 && lineEnd < end) ? start + 1 : end + 1;
  }
  return start + 1 + (/^\w{1,200}/.exec(text.slice(start + 1, start + 201))?.[0].length ?? 0);
}

/** Words that a person or a manifest gives one by one (a list): nothing is parted, `$(VAR)` stays computed. */
export function listedWord(text: string, line?: number): Word {
  return { text, computed: /\$[({\w]/.test(text), ...(line === undefined ? {} : { line }) };
}
