/** A container of a manifest: image, command, arguments, variables; and the engine that it starts. */
import { imageEngine, imageVersion, programOf } from '../../upstream/command/programs.js';
import { readProgram, readWords, variableFlag } from '../../upstream/command/read.js';
import { listedWord, parseCommands, type Word } from '../../upstream/command/words.js';
import type { EngineName, Fact, Reading } from '../../upstream/reading.js';
import { keepableVariable } from '../../upstream/shapes.js';
import type { Tree } from './yaml-tree.js';

/** Words of one list that are read. */
const LIST_MAX = 5000;

export interface Container {
  readonly image: string | null;
  readonly entry: readonly Word[];
  readonly args: readonly Word[];
  readonly variables: readonly Variable[];
  /** False: `envFrom`, `env_file` or the like may set more. */
  readonly variablesComplete: boolean;
}

export interface Variable {
  readonly name: string;
  /** Null: it comes from elsewhere. */
  readonly value: string | null;
  readonly line: number;
}

/** A list is taken word by word; one text is parted as a shell does. */
export function wordsOf(tree: Tree | undefined): Word[] {
  if (tree === undefined) return [];
  if (tree.kind === 'scalar') return tree.text === null ? [] : parseCommands(tree.text, tree.line).flat();
  if (tree.kind !== 'list') return [];
  return tree.items
    .slice(0, LIST_MAX)
    .flatMap((item) =>
      item.kind === 'scalar' && item.text !== null ? [listedWord(item.text, firstLine(item.text, item.line))] : [],
    );
}

/** The engines that it starts; several where a script starts several. Empty: none is known. */
export function readContainer(container: Container): Reading[] {
  const variables = new Map(container.variables.map((one) => [one.name, one]));
  const words = [...container.entry, ...container.args].map((word) => filled(word, variables));
  const started = words.length === 0 ? [] : readWords(words, 0);
  const readings = started.length > 0 ? started : byImage(container, words);
  return readings.map((reading) => complete(reading, container, words));
}

/** `$(NAME)` is filled in by Kubernetes before the program sees it. */
function filled(word: Word, variables: ReadonlyMap<string, Variable>): Word {
  if (!word.text.includes('$(')) return word;
  let open = false;
  const text = word.text.replaceAll(/\$\((\w{1,200})\)/g, (whole, name: string) => {
    const value = variables.get(name)?.value;
    if (value === undefined || value === null) open = true;
    return value ?? whole;
  });
  return { ...word, text, computed: open || /\$[({\w]/.test(text) };
}

function byImage(container: Container, words: readonly Word[]): Reading[] {
  const engine = container.image === null ? null : imageEngine(container.image);
  if (engine === null) return [];
  // A command of its own replaces the image's: what it starts is then unknown.
  if (container.entry.length > 0 && !container.entry[0]!.text.startsWith('-')) {
    return programOf(words) === null ? [] : [readProgram({ engine, flags: words }, [])];
  }
  const flags = words[0]?.text === 'serve' ? words.slice(1) : words;
  return [readProgram({ engine, flags }, [])];
}

function complete(reading: Reading, container: Container, words: readonly Word[]): Reading {
  const { engine } = reading;
  const facts: Fact[] = [];
  for (const { name, value, line } of container.variables) {
    facts.push({ kind: 'variable', name, value: keepableVariable(name, value), line });
  }
  if (container.variablesComplete) facts.push({ kind: 'variables-complete', prefix: '' });
  const version = container.image === null ? null : imageVersion(container.image);
  if (version !== null && version.engine === engine) facts.push({ kind: 'version', text: version.text });
  if (engine === null) return reading;
  const again = withVariableFlags(engine, container, words);
  return { engine, facts: [...facts, ...(again ?? reading).facts] };
}

/** Flags that variables give stand in front: the command's own come later and win. */
function withVariableFlags(engine: EngineName, container: Container, words: readonly Word[]): Reading | null {
  const extra = container.variables.flatMap(({ name, value, line }) => {
    const text = variableFlag(engine, name, value);
    return text === null ? [] : [listedWord(text, line)];
  });
  if (extra.length === 0) return null;
  const program = programOf(words) ?? { engine, flags: container.entry.length > 0 ? [] : words };
  return program.engine === engine ? readProgram({ engine, flags: [...extra, ...program.flags] }, []) : null;
}

/** The text of a block (`|`) begins on the line below its sign. */
function firstLine(text: string, line: number): number {
  return text.includes('\n') ? line + 1 : line;
}
