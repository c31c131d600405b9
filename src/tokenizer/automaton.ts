/**
 * A pattern as a deterministic automaton: one table look-up a character, whatever the text. Its matches are those of a
 * backtracking engine (the first alternative that fits, greedy repeats), since its states keep their threads in order of
 * preference and a thread that has matched ends those behind it.
 */
import {
  type CharSet,
  CODE_POINTS,
  isMovedByNormalizing,
  UNASSIGNED_EXAMPLE,
  uncertainCharacters,
} from './char-set.js';
import { sharedInts } from './shared-arrays.js';
import { type Pattern, PatternError } from './pattern.js';

type Instruction =
  | { readonly op: 'take'; readonly set: number }
  | { readonly op: 'not'; readonly set: number }
  | { readonly op: 'fork'; first: number; second: number }
  | { readonly op: 'match' };

/** Tokenizers' patterns need some 30. */
const STATES_MAX = 2_000;
const SETS_MAX = 30;

/** Can be posted to another thread as it is: the arrays are shared. */
export interface AutomatonTables {
  /** Class of each code point. */
  readonly classOf: Uint8Array;
  /** Classes of characters, one for code points that are not certain, and the last for the end. */
  readonly classes: number;
  /**
   * At state × classes + class: next state × 2, plus 1 where a match ends before this character. State 0 is dead, 1 the start,
   * and -1 that of a code point that is not certain.
   */
  readonly next: Int32Array;
}

const UNKNOWN_STEP = -2;
/** A letter (U+0295) that Unicode 14 had as a small letter and Unicode 17 has as one without case; and another small letter. */
const RECLASSIFIED = 0x295;
const RECLASSIFIED_ONCE_LIKE = 0xdf;

/** Thrown for a text that is not cut, since its pieces are not certain or would take too long; the message says why. */
export class CannotSplit extends Error {}

/** Throws `PatternError` where the pattern is too large or may match nothing. */
export function compilePattern(pattern: Pattern): AutomatonTables {
  const program = new Program();
  program.add(pattern);
  program.code.push({ op: 'match' });
  const { classOf, members } = partition(program.sets);
  const classes = members.length + 2;
  const next = determine(program.code, members);
  for (let at = classes; at < 2 * classes; at++) {
    if ((next[at]! & 1) === 1) throw new PatternError('a pattern that may match nothing');
  }
  return { classOf, classes, next: sharedInts(next) };
}

class Program {
  readonly code: Instruction[] = [];
  readonly sets: CharSet[] = [];

  add(pattern: Pattern): void {
    switch (pattern.kind) {
      case 'set':
        this.code.push({ op: 'take', set: this.#set(pattern.set) });
        break;
      case 'notBefore':
        this.code.push({ op: 'not', set: this.#set(pattern.set) });
        break;
      case 'sequence':
        for (const part of pattern.parts) this.add(part);
        break;
      case 'choice':
        this.#choice(pattern.options);
        break;
      case 'repeat':
        this.#repeat(pattern.part, pattern.least, pattern.most);
        break;
    }
  }

  #set(set: CharSet): number {
    const key = set.join();
    const at = this.sets.findIndex((other) => other.join() === key);
    return at >= 0 ? at : this.sets.push(set) - 1;
  }

  #fork(): { op: 'fork'; first: number; second: number } {
    const fork = { op: 'fork' as const, first: this.code.length + 1, second: 0 };
    this.code.push(fork);
    return fork;
  }

  #choice(options: readonly Pattern[]): void {
    const ends: { first: number; second: number }[] = [];
    for (const [index, option] of options.entries()) {
      if (index === options.length - 1) this.add(option);
      else {
        const fork = this.#fork();
        this.add(option);
        ends.push(this.#fork());
        fork.second = this.code.length;
      }
    }
    for (const end of ends) end.first = end.second = this.code.length;
  }

  #repeat(part: Pattern, least: number, most: number): void {
    for (let i = 0; i < least; i++) this.add(part);
    if (most === Number.POSITIVE_INFINITY) {
      const start = this.code.length;
      const fork = this.#fork();
      this.add(part);
      this.code.push({ op: 'fork', first: start, second: start });
      fork.second = this.code.length;
    } else if (most > least) {
      const fork = this.#fork();
      this.add(part);
      this.#repeat(part, 0, most - least - 1);
      fork.second = this.code.length;
    }
  }
}

/** Classes of code points that no set tells apart; for each class the sets it belongs to, as bits. */
function partition(sets: readonly CharSet[]): { classOf: Uint8Array; members: number[] } {
  if (sets.length > SETS_MAX) throw new PatternError('a pattern with too many sets of characters');
  const bits = new Int32Array(CODE_POINTS + 1);
  for (const [index, set] of sets.entries()) {
    for (let i = 0; i < set.length; i += 2) {
      bits[set[i]!]! ^= 1 << index;
      bits[set[i + 1]! + 1]! ^= 1 << index;
    }
  }
  const classOf = new Uint8Array(new SharedArrayBuffer(CODE_POINTS));
  const members: number[] = [];
  let current = 0;
  let index = -1;
  for (let code = 0; code < CODE_POINTS; code++) {
    if (bits[code] !== 0 || code === 0) {
      current ^= bits[code]!;
      index = members.indexOf(current);
      if (index < 0) index = members.push(current) - 1;
      if (index > 250) throw new PatternError('a pattern with too many classes of characters');
    }
    classOf[code] = index;
  }
  markUncertain(classOf, members.length);
  return { classOf, members };
}

/**
 * Puts code points of which an engine's library may think otherwise into the class `unknown`: those that are not assigned, and of
 * the later ones those that the pattern tells apart from them. So new emoji count, and new letters do not.
 */
function markUncertain(classOf: Uint8Array, unknown: number): void {
  const { unassigned, added } = uncertainCharacters();
  const asUnassigned = classOf[UNASSIGNED_EXAMPLE]!;
  if (classOf[RECLASSIFIED] !== classOf[RECLASSIFIED_ONCE_LIKE]) classOf[RECLASSIFIED] = unknown;
  for (let i = 0; i < added.length; i += 2) {
    for (let code = added[i]!; code <= added[i + 1]!; code++) {
      if (classOf[code] !== asUnassigned || isMovedByNormalizing(code)) classOf[code] = unknown;
    }
  }
  for (let i = 0; i < unassigned.length; i += 2) classOf.fill(unknown, unassigned[i]!, unassigned[i + 1]! + 1);
}

/** The states that can be reached from the start, each for the ordered threads that wait there. */
function determine(code: readonly Instruction[], members: readonly number[]): number[] {
  const states: number[][] = [[], [0]];
  const indices = new Map(states.map((threads, index) => [threads.join(), index]));
  const next: number[] = [];
  for (let state = 0; state < states.length; state++) {
    // The end belongs to no set.
    for (const sets of [...members, null, 0]) {
      if (sets === null) {
        next.push(UNKNOWN_STEP);
        continue;
      }
      const { threads, matched } = advance(code, states[state]!, sets);
      const key = threads.join();
      let target = indices.get(key);
      if (target === undefined) {
        target = states.push(threads) - 1;
        indices.set(key, target);
        if (target > STATES_MAX) throw new PatternError('a pattern with too many states');
      }
      next.push(target * 2 + (matched ? 1 : 0));
    }
  }
  return next;
}

function advance(
  code: readonly Instruction[],
  from: readonly number[],
  sets: number,
): { threads: number[]; matched: boolean } {
  const threads: number[] = [];
  const seen = new Set<number>();
  const stack = [...from].reverse();
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    if (seen.has(at)) continue;
    seen.add(at);
    const instruction = code[at]!;
    if (instruction.op === 'match') return { threads, matched: true };
    if (instruction.op === 'fork') stack.push(instruction.second, instruction.first);
    else {
      const isIn = ((sets >>> instruction.set) & 1) === 1;
      if (instruction.op === 'not' && !isIn) stack.push(at + 1);
      if (instruction.op === 'take' && isIn && !threads.includes(at + 1)) threads.push(at + 1);
    }
  }
  return { threads, matched: false };
}

/** Runs an automaton over UTF-16 code units without lone surrogates. */
export class Automaton {
  readonly #tables: AutomatonTables;
  /** Where the match that `find` found ends. */
  end = 0;
  /** Characters looked at, by all calls. */
  steps = 0;

  constructor(tables: AutomatonTables) {
    this.#tables = tables;
  }

  /**
   * Where the first match within [from, to) begins, or -1; `end` is where it ends. The text ends at `to`. Throws
   * `CannotSplit`.
   */
  find(units: Uint16Array, from: number, to: number): number {
    const { classOf, classes, next } = this.#tables;
    let start = from;
    while (start < to) {
      let state = 1;
      let end = -1;
      let at = start;
      for (;;) {
        let kind = classes - 1;
        let width = 1;
        if (at < to) {
          let code = units[at]!;
          if ((code & 0xfc00) === 0xd800) {
            code = ((code - 0xd800) << 10) + (units[at + 1]! - 0xdc00) + 0x10000;
            width = 2;
          }
          kind = classOf[code]!;
        }
        const step = next[state * classes + kind]!;
        if ((step & 1) === 1) end = at;
        state = step >> 1;
        if (state <= 0) break;
        at += width;
      }
      if (state < 0) throw new CannotSplit('a character that is new in Unicode');
      this.steps += at - start + 1;
      if (end >= 0) {
        this.end = end;
        return start;
      }
      start += (units[start]! & 0xfc00) === 0xd800 ? 2 : 1;
    }
    return -1;
  }
}
