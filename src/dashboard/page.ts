import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { PAGE_STYLE } from './page-style.js';
import { pageMarkup } from './page-markup.js';

/** The compiled modules of the page's own script, each after those it imports. */
export const CLIENT_MODULES: readonly string[] = ['dom', 'format', 'panels', 'findings-panel', 'main'];

export interface Page {
  readonly html: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/**
 * The operators' page: one document that holds its style and its script, so that nothing else is ever fetched but its numbers.
 * Its policy names both by their hashes; nothing else runs, and no string becomes markup.
 */
export function buildPage(): Page {
  const script = clientScript();
  return {
    html: pageMarkup(PAGE_STYLE, script),
    headers: [
      'content-security-policy',
      contentPolicy(script, PAGE_STYLE),
      'cross-origin-opener-policy',
      'same-origin',
      'cross-origin-resource-policy',
      'same-origin',
      'referrer-policy',
      'no-referrer',
      // For browsers that do not read `frame-ancestors`.
      'x-frame-options',
      'DENY',
    ],
  };
}

/**
 * The modules as one script: their imports of each other and the word `export` fall away, the rest is as the compiler wrote it.
 * They share one scope, so two of them may not use one name for different things: that would not parse, and a test parses it.
 */
export function clientScript(): string {
  const parts = CLIENT_MODULES.map((name) =>
    readFileSync(new URL(`./client/${name}.js`, import.meta.url), 'utf8')
      .replaceAll(/^import [^;]*;\n/gm, '')
      .replaceAll(/^export (?:\{\};\n)?/gm, '')
      .replaceAll(/^\/\/# sourceMappingURL=.*\n?/gm, ''),
  );
  return `'use strict';\n(() => {\n${parts.join('')}})();\n`;
}

function contentPolicy(script: string, style: string): string {
  return [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    "connect-src 'self'",
    // The page's icon stands in the page.
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
