/**
 * A counterexample of `verify` as a file: one line of JSON a step, with the names of what happens and to whom, so that whoever has an
 * engine can drive it through the same order of events.
 *
 *   {"trace":"cofferdam-counterexample","version":1,"fault":"torn-write","invariant":"noForeignRead","words":"…","world":{…}}
 *   {"n":1,"do":"submit","request":0,"slot":0,"words":"the client of A submits it"}
 *   {"n":2,"do":"deliver","to":"decode","event":"start","slot":0,"attempt":1,"words":"decode gets \"start\" of A"}
 *   {"end":true,"records":2}
 */
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { type FaultName, isFaultName } from './faults.js';
import { EventKind, type EventKindName } from './messages.js';

export const COUNTEREXAMPLE_NAME = 'cofferdam-counterexample';
export const COUNTEREXAMPLE_VERSION = 1;
/** Steps of one file; counterexamples have a few dozen. */
const STEPS_MAX = 10_000;
/** What a small world can have of anything. */
const COUNT_MAX = 64;

/** What can happen, by the names that the checker's model gives. */
export const STEP_NAMES = [
  'deliver',
  'repeat',
  'lose',
  'land',
  'tear',
  'submit',
  'clientGone',
  'prefillAdmit',
  'prefillHit',
  'compute',
  'abandon',
  'prefillEvict',
  'decodeAdmit',
  'decodeHit',
  'attach',
  'verify',
  'readBegin',
  'readEnd',
  'finish',
  'decodeEvict',
  'gatewayTimer',
  'prefillTimer',
  'decodeTimer',
  'timeout',
  'prefillRestart',
  'decodeRestart',
  'gatewayLearnsPrefill',
  'gatewayLearnsDecode',
  'decodeLearnsPrefill',
  'prefillLearnsDecode',
] as const;
export type StepName = (typeof STEP_NAMES)[number];

/** Fields that a step does not need are absent. */
export interface CounterexampleStep {
  readonly n: number;
  readonly do: StepName;
  /** The same for people. */
  readonly words: string;
  /** `submit`: the index of the request in the world; `slot` is the one that it gets. */
  readonly request?: number;
  readonly slot?: number;
  readonly attempt?: number;
  /** Of a message. */
  readonly to?: 'gateway' | 'prefill' | 'decode';
  readonly event?: EventKindName;
  /** Of a write: its place in its request, and the incarnation of prefill that posted it. */
  readonly place?: number;
  readonly life?: number;
  readonly page?: number;
}

export interface CounterexampleRequest {
  readonly tenant: number;
  readonly pages: number;
  readonly hash: number;
}

export interface CounterexampleWorld {
  readonly requests: readonly CounterexampleRequest[];
  readonly slots: number;
  readonly prefillPages: number;
  readonly decodePages: number;
  readonly retries: number;
  readonly prefixes: boolean;
}

export interface Counterexample {
  readonly fault: FaultName;
  /** The invariant that broke, and how. */
  readonly invariant: string;
  readonly words: string;
  readonly world: CounterexampleWorld;
  readonly steps: readonly CounterexampleStep[];
}

export function counterexampleText({ steps, ...head }: Counterexample): string {
  const lines = [
    { trace: COUNTEREXAMPLE_NAME, version: COUNTEREXAMPLE_VERSION, ...head },
    ...steps,
    { end: true, records: steps.length },
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

type Fields = Readonly<Record<string, unknown>>;

const wrong = (line: number, wanted: string, got: unknown): CodedError =>
  new CodedError('usage', `Expected line ${line} of the counterexample to be ${wanted}, got ${shown(got)}`);

/** Throws CodedError `usage` where the text is not a whole counterexample of this version, with the line that is wrong. */
export function parseCounterexample(text: string): Counterexample {
  const lines = text.split('\n').filter((line) => line !== '');
  if (lines.length > STEPS_MAX + 2) throw wrong(STEPS_MAX + 2, 'the end', 'more steps');
  const [head, ...rest] = lines.map((line, at) => fieldsOf(line, at + 1));
  if (head === undefined) throw wrong(1, 'the head of a counterexample', 'an empty file');
  const { fault, invariant, words, world } = headOf(head);
  const end = rest.pop();
  if (end?.end !== true) throw wrong(lines.length, 'the end (is the file cut?)', lines.at(-1));
  if (end.records !== rest.length) throw wrong(lines.length, `the end of ${rest.length} steps`, end.records);
  return { fault, invariant, words, world, steps: rest.map((step, at) => stepOf(step, at + 1, world)) };
}

function fieldsOf(line: string, at: number): Fields {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw wrong(at, 'one whole record of JSON (is the file cut?)', line);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw wrong(at, 'a record', value);
}

function headOf(head: Fields): Omit<Counterexample, 'steps'> {
  const { trace, version, fault, invariant, words } = head;
  if (trace !== COUNTEREXAMPLE_NAME) throw wrong(1, `the head of a trace named ${COUNTEREXAMPLE_NAME}`, trace);
  if (version !== COUNTEREXAMPLE_VERSION) throw wrong(1, `of version ${COUNTEREXAMPLE_VERSION}`, version);
  if (typeof fault !== 'string' || !isFaultName(fault)) throw wrong(1, 'of a fault of the catalogue', fault);
  if (typeof invariant !== 'string' || typeof words !== 'string') throw wrong(1, 'with an invariant', invariant);
  return { fault, invariant, words, world: worldOf(head.world) };
}

const isCount = (value: unknown, least = 0): value is number =>
  Number.isInteger(value) && (value as number) >= least && (value as number) <= COUNT_MAX;

function worldOf(value: unknown): CounterexampleWorld {
  const world = (typeof value === 'object' ? (value ?? {}) : {}) as Fields;
  const { requests, slots, prefillPages, decodePages, retries, prefixes } = world;
  const isRequest = ({ tenant, pages, hash }: Fields): boolean =>
    isCount(tenant, 1) && isCount(pages, 1) && isCount(hash);
  const isFine =
    Array.isArray(requests) &&
    requests.length >= 1 &&
    requests.length <= COUNT_MAX &&
    requests.every((request) => typeof request === 'object' && request !== null && isRequest(request as Fields)) &&
    [slots, prefillPages, decodePages].every((count) => isCount(count, 1)) &&
    isCount(retries) &&
    typeof prefixes === 'boolean';
  if (!isFine) throw wrong(1, 'with a world of requests, slots and pages', value);
  return world as unknown as CounterexampleWorld;
}

const NUMBERS = ['request', 'slot', 'attempt', 'place', 'life', 'page'] as const;

function stepOf(step: Fields, n: number, world: CounterexampleWorld): CounterexampleStep {
  const line = n + 1;
  if (step.n !== n) throw wrong(line, `step ${n}`, step.n);
  if (!STEP_NAMES.some((name) => name === step.do)) throw wrong(line, 'a step that can happen', step.do);
  if (typeof step.words !== 'string') throw wrong(line, 'a step with its words', step.words);
  for (const name of NUMBERS) {
    if (step[name] !== undefined && !isCount(step[name]))
      throw wrong(line, `a step with a count as \`${name}\``, step[name]);
  }
  const { request, slot, event, to } = step;
  if (request !== undefined && (request as number) >= world.requests.length) throw wrong(line, 'of a request', request);
  if (slot !== undefined && (slot as number) >= world.slots) throw wrong(line, 'of a slot', slot);
  if (event !== undefined && !(typeof event === 'string' && Object.hasOwn(EventKind, event))) {
    throw wrong(line, 'a message of the protocol', event);
  }
  if (to !== undefined && to !== 'gateway' && to !== 'prefill' && to !== 'decode')
    throw wrong(line, 'to a machine', to);
  return step as unknown as CounterexampleStep;
}
