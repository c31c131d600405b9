/**
 * Jinja for chat templates, with two things added to the library: bounds on what a template may do, and the string functions
 * that Python has and the library does otherwise (`strip` takes the characters to strip, and Python's white space is not ours).
 */
import * as library from '@huggingface/jinja';
import type { Clock } from '../base/clock.js';

/** What is used of the library: its own types cannot be resolved from an ECMAScript module. */
interface Value {
  readonly type: string;
  readonly value: unknown;
}

interface Scope {
  set(name: string, value: unknown): Value;
}

interface Evaluator {
  run(program: Program): Value;
  evaluate(node: Node | undefined, scope: Scope): Value;
}

interface Library {
  readonly Environment: new () => Scope;
  readonly Interpreter: new (scope: Scope) => Evaluator;
  readonly tokenize: (template: string, options: { lstrip_blocks: boolean; trim_blocks: boolean }) => unknown;
  readonly parse: (tokens: unknown) => Program;
}

const { Environment, Interpreter, tokenize, parse } = library as unknown as Library;

export interface Program {
  readonly type: string;
  readonly body: readonly unknown[];
}

/** What is looked at of a node of the parsed template. */
interface Node {
  readonly type: string;
  readonly callee?: Node;
  readonly args?: readonly Node[];
  readonly object?: Node;
  readonly property?: Node;
  readonly computed?: boolean;
  readonly operand?: Node;
  readonly filter?: Node;
  readonly lhs?: Node;
  readonly value?: unknown;
}

/** A template of 100 steps a message renders 2,000 messages. */
const STEPS_MAX = 200_000;
/** Rendering stands in the way of everything else. */
const RENDER_MS_MAX = 250;
/** The clock is read once in as many steps. */
const STEPS_BETWEEN = 256;
/** Characters of any string on the way. */
const STRING_CHARACTERS_MAX = 32 * 1024 * 1024;
/** Items of a `range`. */
const RANGE_ITEMS_MAX = 10_000;

/** Python's `str.isspace`. */
const PYTHON_SPACE =
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000';

/** Throws where the template is no Jinja that the library reads. */
export function parseTemplate(template: string): Program {
  return parse(tokenize(template, { lstrip_blocks: true, trim_blocks: true }));
}

/** Throws where the template raises an exception, fails, or goes beyond its bounds. */
export function renderTemplate(program: Program, variables: Readonly<Record<string, unknown>>, clock: Clock): string {
  const scope = new Environment();
  const globals: Record<string, unknown> = {
    true: true,
    false: false,
    none: null,
    True: true,
    False: false,
    None: null,
    raise_exception: () => {
      throw new Error('the template raised an exception');
    },
    range: boundedRange,
    strftime_now: (format: string) => strftime(format, new Date(clock.wallMs())),
    ...variables,
  };
  for (const [name, value] of Object.entries(globals)) scope.set(name, value);
  const rendered: unknown = new BoundedInterpreter(scope, clock).run(program).value;
  if (typeof rendered !== 'string') throw new Error('the template gave no text');
  return rendered;
}

function boundedRange(first: number, second?: number, step = 1): number[] {
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (!(count <= RANGE_ITEMS_MAX)) throw new Error('a range that is too long');
  return Array.from({ length: count }, (_, i) => start + i * step);
}

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = 'January February March April May June July August September October November December'.split(' ');

function strftime(format: string, now: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const parts: Readonly<Record<string, string>> = {
    Y: String(now.getFullYear()),
    y: two(now.getFullYear() % 100),
    m: two(now.getMonth() + 1),
    B: MONTHS[now.getMonth()]!,
    b: MONTHS[now.getMonth()]!.slice(0, 3),
    d: two(now.getDate()),
    A: WEEKDAYS[now.getDay()]!,
    a: WEEKDAYS[now.getDay()]!.slice(0, 3),
    H: two(now.getHours()),
    M: two(now.getMinutes()),
    S: two(now.getSeconds()),
    '%': '%',
  };
  return format.replaceAll(/%(.)/gs, (_, directive: string) => {
    const part = parts[directive];
    if (part === undefined) throw new Error('a date in a form that is not known');
    return part;
  });
}

const STRIPS: readonly unknown[] = ['strip', 'lstrip', 'rstrip'];

class BoundedInterpreter extends Interpreter {
  readonly #clock: Clock;
  readonly #startMs: number;
  #steps = 0;

  constructor(scope: Scope, clock: Clock) {
    super(scope);
    this.#clock = clock;
    this.#startMs = clock.nowMs();
  }

  override evaluate(node: Node | undefined, scope: Scope): Value {
    this.#steps++;
    const isLate = this.#steps % STEPS_BETWEEN === 0 && this.#clock.nowMs() - this.#startMs > RENDER_MS_MAX;
    if (isLate || this.#steps > STEPS_MAX) throw new Error('a template that takes too long');
    const value = this.#stripped(node, scope) ?? super.evaluate(node, scope);
    if (typeof value.value === 'string' && value.value.length > STRING_CHARACTERS_MAX) {
      throw new Error('a template that makes too long a text');
    }
    return value;
  }

  /** `text.strip(characters)` and its like, and `text | trim`, as Python does them; null for anything else. */
  #stripped(node: Node | undefined, scope: Scope): Value | null {
    if (node?.type === 'FilterExpression') {
      const { filter, operand } = node;
      if (filter?.type !== 'Identifier' || filter.value !== 'trim') return null;
      return this.#strip(operand, [], 'strip', scope);
    }
    const { callee, args = [] } = node ?? {};
    if (node?.type !== 'CallExpression' || callee?.type !== 'MemberExpression' || callee.computed === true) return null;
    const name = callee.property?.value;
    return STRIPS.includes(name) ? this.#strip(callee.object, args, String(name), scope) : null;
  }

  #strip(operand: Node | undefined, args: readonly Node[], name: string, scope: Scope): Value | null {
    const text = this.evaluate(operand, scope);
    const characters: unknown = args.length === 0 ? null : this.evaluate(args[0], scope).value;
    if (text.type !== 'StringValue' || args.length > 1 || (typeof characters !== 'string' && characters !== null)) {
      throw new Error('a call of strip of this kind');
    }
    return toValue(pythonStrip(text.value as string, characters ?? PYTHON_SPACE, name));
  }
}

function toValue(value: string): Value {
  return new Environment().set('value', value);
}

/** Python's `strip`, `lstrip`, `rstrip`. */
export function pythonStrip(text: string, characters: string, name: string): string {
  let start = 0;
  let end = text.length;
  if (name !== 'rstrip') while (start < end && characters.includes(text[start]!)) start++;
  if (name !== 'lstrip') while (end > start && characters.includes(text[end - 1]!)) end--;
  return text.slice(start, end);
}

/** Whether a loop of the template goes over the parts of a content: then it is given parts, otherwise one text. */
export function loopsOverContent(program: unknown): boolean {
  if (Array.isArray(program)) return program.some(loopsOverContent);
  if (typeof program !== 'object' || program === null) return false;
  const { type, iterable } = program as { readonly type?: unknown; readonly iterable?: Node };
  if (type === 'For' && namesContent(iterable)) return true;
  return Object.values(program).some(loopsOverContent);
}

function namesContent(node: Node | undefined): boolean {
  if (node === undefined) return false;
  if (node.type === 'SelectExpression') return namesContent(node.lhs);
  if (node.type === 'FilterExpression') return namesContent(node.operand);
  if (node.type === 'MemberExpression') return node.property?.value === 'content';
  return node.type === 'Identifier' && node.value === 'content';
}
