/**
 * Compiled modules as one script that needs no loader: each becomes a function that is called once, after those it imports, and gives
 * back what it exports. It knows the forms of import and export that the compiler writes for this source, and refuses every other.
 */
import { readFileSync } from 'node:fs';
import { assert } from '../../base/assert.js';

/** Reads the text of a module by its path. */
export type ReadModule = (path: string) => string;

interface Names {
  /** As the other module calls it, and as it is called here. */
  readonly theirs: string;
  readonly ours: string;
}

const IMPORT = /^import (?:\{([^}]*)\} from )?'([^']+)';\n/gm;
const EXPORT_FROM = /^export \{([^}]*)\} from '([^']+)';\n/gm;
const EXPORT_LIST = /^export \{([^}]*)\};\n/gm;
const EXPORT_NAME = /^export ((?:async )?function\*?|class|const) ([A-Za-z_$][\w$]*)/gm;
const SOURCE_MAP = /^\/\/# sourceMappingURL=.*\n?/gm;

function namesOf(list: string): Names[] {
  return list
    .split(',')
    .map((part) => part.trim().split(/\s+as\s+/))
    .filter(([theirs]) => theirs !== '')
    .map(([theirs, ours = theirs]) => ({ theirs, ours }));
}

/** One script of the module at `entry` and all that it imports. Paths are URLs; a package or a `node:` module is refused. */
export function bundle(entry: string, read: ReadModule = (path) => readFileSync(new URL(path), 'utf8')): string {
  const parts: string[] = [];
  const numbers = new Map<string, number>();
  const open = new Set<string>();
  const add = (path: string): number => {
    const known = numbers.get(path);
    if (known !== undefined) return known;
    assert(!open.has(path), 'modules of a page import each other in a circle');
    open.add(path);
    const part = wrap(read(path), (specifier) => {
      assert(/^\.\.?\//.test(specifier), `a module of a page imports ${specifier}, which is not a file beside it`);
      return `m${add(new URL(specifier, path).href)}`;
    });
    const number = numbers.size;
    numbers.set(path, number);
    parts.push(`const m${number} = ${part};\n`);
    return number;
  };
  add(entry);
  const script = `'use strict';\n(() => {\n${parts.join('')}})();\n`;
  assert(!/<\/script|<!--/i.test(script), 'the code of a page ends its own element');
  return script;
}

function wrap(text: string, moduleOf: (specifier: string) => string): string {
  const exported: string[] = [];
  const body = text
    .replaceAll(SOURCE_MAP, '')
    .replaceAll(IMPORT, (_, list: string | undefined, specifier: string) => {
      const from = moduleOf(specifier);
      const taken = namesOf(list ?? '').map(({ theirs, ours }) => (theirs === ours ? ours : `${theirs}: ${ours}`));
      return taken.length === 0 ? '' : `const { ${taken.join(', ')} } = ${from};\n`;
    })
    .replaceAll(EXPORT_FROM, (_, list: string, specifier: string) => {
      const from = moduleOf(specifier);
      for (const { theirs, ours } of namesOf(list)) exported.push(`${ours}: ${from}.${theirs}`);
      return '';
    })
    .replaceAll(EXPORT_LIST, (_, list: string) => {
      for (const { theirs, ours } of namesOf(list)) exported.push(`${ours}: ${theirs}`);
      return '';
    })
    .replaceAll(EXPORT_NAME, (_, kind: string, name: string) => {
      exported.push(name);
      return `${kind} ${name}`;
    });
  const left = /^(?:import|export)\b.*/m.exec(body);
  assert(left === null, `a module of a page says \`${left?.[0] ?? ''}\`, which is not understood`);
  return `(() => {\n${body}return Object.freeze({ ${exported.join(', ')} });\n})()`;
}
