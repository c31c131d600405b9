/**
 * The trace of a real run: one line of JSON a protocol event, in the order in which one process saw them. It holds what the machines
 * hold, which is small integers: slots, attempts, incarnations, counts, page numbers and epochs. Never a text or a prompt. Salts and the
 * hashes of prompts' pages stand under other numbers, made with a key of the trace's own that is written nowhere: the same stay the same.
 *
 *   {"trace":"cofferdam-handoff","version":1,"engine":{"pageTokens":16,"faults":[]}}
 *   {"n":1,"actor":"decode","life":1,"peer":1,"slots":2,"pages":4,"pagesPerSlot":4}
 *   {"n":2,"actor":"decode","event":"start","attempt":1,"to":1,"effects":[{"effect":"sendPrefill","kind":"lease","attempt":1}]}
 *   {"end":true,"records":2}
 *
 * A `life` is the start or restart of a machine. Fields that are 0 are left out; `list` holds the pairs behind a message.
 */
import { createHash, randomBytes } from 'node:crypto';
import { type Actor, SCHEMA, type View } from './layout.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { E, EVENT_FIXED_WIDTH, EventKind, type EventKindName, eventName, type Out } from './messages.js';
import { namedEffects } from './step.js';

export const TRACE_NAME = 'cofferdam-handoff';
export const TRACE_VERSION = 1;
/** Characters of one line: a lease of a very long prompt names each of its pages. */
export const TRACE_LINE_MAX: number = 1 << 20;
/** Pages, slots, incarnations: what a record may be sized for. */
const SIZE_MAX = 1 << 22;

type Field =
  | 'slot'
  | 'attempt'
  | 'from'
  | 'to'
  | 'room'
  | 'tokens'
  | 'promptPages'
  | 'pages'
  | 'tenant'
  | 'salt'
  | 'code';
const FIELDS: readonly Field[] = [
  'slot',
  'attempt',
  'from',
  'to',
  'room',
  'tokens',
  'promptPages',
  'pages',
  'tenant',
  'salt',
  'code',
];

export type TraceFields = { readonly [Name in Field]?: number };

export interface TraceEffect extends TraceFields {
  readonly effect: string;
  /** The kind of message, where the effect sends one. */
  readonly kind?: string;
  readonly count?: number;
}

export interface TraceStep extends TraceFields {
  readonly n: number;
  readonly actor: Actor;
  readonly event: EventKindName;
  readonly list?: readonly (readonly [number, number])[];
  readonly effects: readonly TraceEffect[];
}

export interface TraceLife {
  readonly n: number;
  readonly actor: Actor;
  /** Its incarnation, and its peer's as it knows it. */
  readonly life: number;
  readonly peer: number;
  readonly slots: number;
  readonly pages?: number;
  readonly pagesPerSlot?: number;
  readonly prefixes?: boolean;
}

export type TraceRecord = TraceStep | TraceLife;

/** What a trace is taken from: a machine that calls its tap after each step, before it carries out the effects. */
export interface Tapped {
  readonly view: View;
  tap: ((event: Int32Array, out: Out) => void) | null;
}

/** What the head of a trace says of the engine that it was taken from: sizes in tokens, and the names of faults and guards. */
export type TraceFacts = Readonly<Record<string, number | readonly string[]>>;

/** Writes a trace line by line: of the machines that it is attached to, or of records that were made elsewhere. */
export class TraceWriter {
  #records = 0;
  readonly #key = newTraceKey();
  readonly #write: (line: string) => void;

  /** `write` gets each line without its end. */
  constructor(write: (line: string) => void, engine?: TraceFacts) {
    this.#write = write;
    write(JSON.stringify({ trace: TRACE_NAME, version: TRACE_VERSION, ...(engine === undefined ? {} : { engine }) }));
  }

  /** From now on the machine's events are written. To be called before its first. */
  attach(machine: Tapped): void {
    traceMachine(machine, this.#key, (tail) => this.record(tail));
  }

  /** The next record, as `traceMachine` gives it. */
  record(tail: string): void {
    this.#write(`{"n":${++this.#records},${tail}`);
  }

  /** The last line: without it a trace counts as cut. */
  end(): void {
    this.#write(JSON.stringify({ end: true, records: this.#records }));
  }
}

/**
 * Gives the begin of the machine's life at once and each of its steps as it happens, each as the text of a record without its brace and
 * number, which whoever joins the machines puts in front. To be called before the machine's first event, with one `key` for all machines.
 */
export function traceMachine(machine: Tapped, key: Uint8Array, put: (tail: string) => void): void {
  const { view } = machine;
  const { actor, slots, pages, pagesPerSlot, prefixes } = view.shape;
  const pool = pages === 0 ? {} : { pages, pagesPerSlot, ...(prefixes ? { prefixes } : {}) };
  const [life, peer] = [view.cells[view.at], view.cells[view.at + 1]];
  const tailOf = (record: object): string => JSON.stringify(record).slice(1);
  put(tailOf({ actor, life, peer, slots, ...pool }));
  machine.tap = (event, out) => {
    const name = eventName(event[E.kind]);
    const second = (value: number): number => (HASH_LISTS.has(name) ? otherNumber(key, value) : value);
    const list = Array.from({ length: event[E.count] }, (_, i) => [
      event[E.list + 2 * i],
      second(event[E.list + 2 * i + 1]),
    ]);
    const step = { actor, event: name, ...withoutSecrets(key, fieldsOf(event)) };
    const effects = traceEffects(out).map((effect) => withoutSecrets(key, effect, effect.effect === 'seal'));
    put(tailOf({ ...step, ...(list.length > 0 ? { list } : {}), effects }));
  };
}

const KEY_BYTES = 32;
/** Events whose pairs end in a hash over tokens. */
const HASH_LISTS: ReadonlySet<string> = new Set(['hit', 'settled', 'finish'] satisfies EventKindName[]);

/** What salts and hashes are renamed with; all machines of a trace have the same. */
export function newTraceKey(): Uint8Array {
  return randomBytes(KEY_BYTES);
}

/** 31 bits that tell nothing of `value` to whoever has no key. 0 is none, and stays. */
function otherNumber(key: Uint8Array, value: number): number {
  if (value === 0) return 0;
  return createHash('sha256').update(key).update(Int32Array.of(value)).digest().readUInt32BE(0) >>> 1;
}

function withoutSecrets<Fields extends TraceFields>(key: Uint8Array, fields: Fields, codeIsHash = false): Fields {
  const { salt, code } = fields;
  return {
    ...fields,
    ...(salt === undefined ? {} : { salt: otherNumber(key, salt) }),
    ...(codeIsHash && code !== undefined ? { code: otherNumber(key, code) } : {}),
  };
}

function fieldsOf(event: Int32Array): TraceFields {
  return Object.fromEntries(FIELDS.filter((name) => event[E[name]] !== 0).map((name) => [name, event[E[name]]]));
}

/** The effects of a step as a trace holds them. */
export function traceEffects(out: Out): TraceEffect[] {
  return namedEffects(out).map(({ effect, kind, count, ...fields }) => {
    const used = FIELDS.filter((name) => fields[name] !== 0).map((name) => [name, fields[name]]);
    return {
      effect,
      ...(kind === null ? {} : { kind }),
      ...(count === 0 ? {} : { count }),
      ...Object.fromEntries(used),
    };
  });
}

/** The event of a step as its machine takes it. */
export function eventOf(step: TraceStep): Int32Array {
  const list = step.list ?? [];
  const event = new Int32Array(EVENT_FIXED_WIDTH + 2 * list.length);
  event[E.kind] = EventKind[step.event];
  for (const name of FIELDS) event[E[name]] = step[name] ?? 0;
  event[E.count] = list.length;
  for (const [i, [first, second]] of list.entries()) {
    event[E.list + 2 * i] = first;
    event[E.list + 2 * i + 1] = second;
  }
  return event;
}

type Fields = Readonly<Record<string, unknown>>;

const wrong = (line: number, wanted: string, got: unknown): CodedError =>
  new CodedError('usage', `Expected line ${line} of the trace to be ${wanted}, got ${shown(got)}`);

/** Reads a trace line by line; throws where a line is not what this version writes. */
export class TraceReader {
  #line = 0;
  #records = 0;
  /** The last line was read: nothing is missing. */
  isWhole = false;

  /** The record in the line; null: the first or the last line. */
  take(text: string): TraceRecord | null {
    this.#line++;
    if (this.isWhole) throw wrong(this.#line, 'nothing, behind the end', text);
    const value = this.#parse(text);
    if (this.#line === 1) return this.#head(value);
    if (value.end === true) return this.#end(value);
    if (value.n !== this.#records + 1) throw wrong(this.#line, `record ${this.#records + 1}`, value.n);
    this.#records++;
    if (!(typeof value.actor === 'string' && Object.hasOwn(SCHEMA, value.actor))) {
      throw wrong(this.#line, 'of gateway, prefill or decode', value.actor);
    }
    this.#checkNumbers(value);
    return 'life' in value ? this.#lifeOf(value) : this.#stepOf(value);
  }

  #parse(text: string): Fields {
    if (text.length > TRACE_LINE_MAX) throw wrong(this.#line, `at most ${TRACE_LINE_MAX} characters`, text.length);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw wrong(this.#line, 'one whole record of JSON (is the trace cut?)', text);
    }
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
    throw wrong(this.#line, 'a record', value);
  }

  #head(value: Fields): null {
    if (value.trace !== TRACE_NAME) throw wrong(1, `the head of a trace named ${TRACE_NAME}`, value.trace);
    if (value.version !== TRACE_VERSION) throw wrong(1, `of version ${TRACE_VERSION}`, value.version);
    return null;
  }

  #end(value: Fields): null {
    if (value.records !== this.#records) throw wrong(this.#line, `the end of ${this.#records} records`, value.records);
    this.isWhole = true;
    return null;
  }

  #checkNumbers(value: Fields): void {
    for (const name of FIELDS) {
      const number = value[name];
      const isFine = number === undefined || (Number.isInteger(number) && Math.abs(number as number) < 2 ** 31);
      if (!isFine) throw wrong(this.#line, `a record with a whole number of 32 bits as \`${name}\``, number);
    }
  }

  #lifeOf(value: Fields): TraceLife {
    const pool = value.actor === 'gateway' ? [] : [value.pages, value.pagesPerSlot];
    for (const size of [value.life, value.peer, value.slots, ...pool]) {
      const isFine = Number.isInteger(size) && (size as number) >= 1 && (size as number) <= SIZE_MAX;
      if (!isFine) throw wrong(this.#line, `a life with sizes from 1 to ${SIZE_MAX}`, size);
    }
    return value as unknown as TraceLife;
  }

  #stepOf(value: Fields): TraceStep {
    const isEvent = typeof value.event === 'string' && Object.hasOwn(EventKind, value.event);
    if (!isEvent) throw wrong(this.#line, 'an event of the protocol', value.event);
    const isObject = (effect: unknown): boolean => typeof effect === 'object' && effect !== null;
    if (!(Array.isArray(value.effects) && value.effects.every((effect) => isObject(effect)))) {
      throw wrong(this.#line, 'a step with its effects', value.effects);
    }
    const isPair = (pair: unknown): boolean =>
      Array.isArray(pair) && pair.length === 2 && pair.every((number) => Number.isInteger(number));
    const list = value.list ?? [];
    if (!(Array.isArray(list) && list.every((pair) => isPair(pair)))) throw wrong(this.#line, 'a list of pairs', list);
    return value as unknown as TraceStep;
  }
}
