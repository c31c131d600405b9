/**
 * Goal: the arrows of the diagrams in docs/HANDOFF.md are the transitions that the machines make.
 * Method: `verify` explores, and each step's machine, phase before, event and phase after is noted; compared both ways.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { DecodePhase } from '../handoff/decode.js';
import { faultBits, type FaultName } from '../handoff/faults.js';
import { GatewayPhase } from '../handoff/gateway.js';
import { ALL_GUARDS, guardBits, type GuardName } from '../handoff/guards.js';
import { DS, GS, PS, slotAt } from '../handoff/layout.js';
import { E, eventName } from '../handoff/messages.js';
import { PrefillPhase } from '../handoff/prefill.js';
import { explore } from './explore.js';
import { ACTION_INDEX_MAX, type Model } from './model.js';
import { ACTION_KEYS, type ActionKey } from './models/handoff-actions.js';
import { DECODE, ENV, GATEWAY, ownerSlot, PREFILL, unpack } from './models/handoff-record.js';
import { HandoffModel } from './models/handoff.js';
import { type ScopeName, scopeOf, type World } from './scopes.js';

/** What a kind of action is to the machine that takes it; messages carry theirs, restarts and losses are no step of a machine. */
const TAKEN: Readonly<Partial<Record<ActionKey, readonly [number, string]>>> = {
  land: [PREFILL, 'settled'],
  tear: [PREFILL, 'settled'],
  submit: [GATEWAY, 'submit'],
  clientGone: [GATEWAY, 'clientGone'],
  prefillAdmit: [PREFILL, 'admit'],
  prefillHit: [PREFILL, 'hit'],
  compute: [PREFILL, 'chunk'],
  abandon: [PREFILL, 'abandon'],
  decodeAdmit: [DECODE, 'admit'],
  decodeHit: [DECODE, 'hit'],
  attach: [DECODE, 'attach'],
  verify: [DECODE, 'verified'],
  readBegin: [DECODE, 'readBegin'],
  readEnd: [DECODE, 'readEnd'],
  finish: [DECODE, 'finish'],
  gatewayTimer: [GATEWAY, 'timer'],
  prefillTimer: [PREFILL, 'timer'],
  decodeTimer: [DECODE, 'timer'],
  timeout: [DECODE, 'timeout'],
  gatewayLearnsPrefill: [GATEWAY, 'prefillDown'],
  gatewayLearnsDecode: [GATEWAY, 'decodeDown'],
  decodeLearnsPrefill: [DECODE, 'prefillDown'],
  prefillLearnsDecode: [PREFILL, 'decodeDown'],
};
const MACHINES = ['Gateway', 'Prefill', 'Decode'] as const;
const PHASES = [GatewayPhase, PrefillPhase, DecodePhase].map((phases) => Object.keys(phases));
const PHASE_FIELD = [GS.phase, PS.phase, DS.phase] as const;

/** `Decode leased --complete--> draining` */
const arrowOf = (machine: number, from: string, event: string, to: string): string =>
  `${MACHINES[machine]} ${from} --${event}--> ${to}`;
const isLoop = (arrow: string): boolean => / (\w+) --\w+--> \1$/.test(arrow);

/** The arrows of the three diagrams. Words in brackets explain and do not count. */
function drawn(): Set<string> {
  const page = readFileSync(new URL('../../../docs/HANDOFF.md', import.meta.url), 'utf8');
  const arrows = new Set<string>();
  for (const [machine, name] of MACHINES.entries()) {
    const section = page.split(`\n### ${name}\n`)[1]?.split('\n```\n')[0] ?? '';
    for (const [, from = '', to = '', events = ''] of section.matchAll(/^ {2}(\w+) --> (\w+): (.*)$/gm)) {
      for (const event of events.replaceAll(/\([^)]*\)/g, '').split(',')) {
        arrows.add(arrowOf(machine, from, event.trim(), to));
      }
    }
  }
  return arrows;
}

/** What these do in a phase that stays is to tell the client or the operator, which the record doesn't hold. */
const TELLS: readonly string[] = ['submit', 'timeout'];

/** The model, with each step's arrows noted. The slot of an event that stays in its phase counts where something was said or changed. */
class Watched implements Model {
  readonly width;
  readonly cells;
  readonly parts;
  readonly kinds;
  readonly properties: Model['properties'];
  readonly #model: HandoffModel;
  readonly #seen: Set<string>;
  readonly #event = new Int32Array(32);
  readonly #before: Int32Array;

  /** Ends, as if something had broken, when every arrow of `until` was seen. */
  constructor(model: HandoffModel, seen: Set<string>, until: readonly string[]) {
    this.width = model.width;
    this.cells = model.cells;
    this.parts = model.parts;
    this.kinds = model.kinds;
    this.#model = model;
    this.#seen = seen;
    this.#before = new Int32Array(model.record.words.length);
    const isDone = (): boolean => until.length > 0 && until.every((arrow) => seen.has(arrow));
    this.properties = {
      always: () => (isDone() ? { invariant: 'all seen', words: '' } : null),
      sometimes: [],
      settled: () => true,
    };
  }

  init(): void {
    this.#model.init();
  }
  wordsUsed(): number {
    return this.#model.wordsUsed();
  }
  actions(into: Int32Array): number {
    return this.#model.actions(into);
  }
  boundary(): boolean {
    return true;
  }
  inWords(action: number): string {
    return this.#model.inWords(action);
  }

  next(action: number): number {
    const { record, scope } = this.#model;
    const { words, cells } = record;
    const key = ACTION_KEYS[(action / ACTION_INDEX_MAX) | 0];
    let [machine, event] = TAKEN[key] ?? [-1, ''];
    if (key === 'deliver' || key === 'repeat') {
      const at = record.messages + 2 * (action % ACTION_INDEX_MAX);
      machine = unpack(words[at], words[at + 1], this.#event);
      event = eventName(this.#event[E.kind]);
    }
    if (machine < 0) return this.#model.next(action);
    const view = [record.gateway, record.prefill, record.decode][machine];
    const about = this.#slotOf(key, action % ACTION_INDEX_MAX);
    const sent = cells[record.env + ENV.messages] - (key === 'deliver' ? 1 : 0);
    const before = this.#before;
    before.set(words);
    const phases = new Uint8Array(before.buffer);
    const touched = this.#model.next(action);
    const end = record.parts[machine + 1];
    let isLooping = TELLS.includes(event) || cells[record.env + ENV.messages] > sent;
    for (let i = record.parts[machine]; !isLooping && i < end; i++) isLooping = words[i] !== before[i];
    for (let slot = 0; slot < scope.slots; slot++) {
      const at = slotAt(view, slot) + PHASE_FIELD[machine];
      if (phases[at] === cells[at] && !(isLooping && slot === about)) continue;
      const names = PHASES[machine];
      this.#seen.add(arrowOf(machine, names[phases[at]] ?? '', event, names[cells[at]] ?? ''));
    }
    return touched;
  }

  /** The slot that an event is about; -1: it is about a node. */
  #slotOf(key: ActionKey, index: number): number {
    const { record, scope } = this.#model;
    const { cells } = record;
    if (key === 'deliver' || key === 'repeat') return this.#event[E.slot];
    if (key === 'land' || key === 'tear') return ownerSlot(record.words[record.writes + index]);
    if (key === 'decodeHit' || key === 'prefillHit' || key === 'attach') return index >> 3;
    if (key !== 'submit') return TAKEN[key]?.[1].endsWith('Down') === true ? (scope.slots === 1 ? 0 : -1) : index;
    for (let slot = 0; slot < scope.slots; slot++) {
      if (cells[slotAt(record.gateway, slot) + GS.phase] === GatewayPhase.idle) return slot;
    }
    return -1;
  }
}

interface Look {
  readonly scope: ScopeName;
  /** Which world of the scope; default: the first. */
  readonly world?: number;
  /** What is other than in that world. */
  readonly but?: Partial<World>;
  /** States that are looked at, in breadth; default: 15,000. */
  readonly states?: number;
  readonly fault?: FaultName;
  /** Default: all of them. */
  readonly guards?: readonly GuardName[];
}

function look(seen: Set<string>, one: Look, until: readonly string[] = []): void {
  const { scope, world = 0, but = {}, states = 15_000, fault, guards } = one;
  const rules = {
    faults: fault === undefined ? 0 : faultBits([fault]),
    guards: guards === undefined ? ALL_GUARDS : guardBits(guards),
  };
  const model = new HandoffModel({ ...scopeOf(scope).worlds[world].world, ...but, rules });
  explore(new Watched(model, seen, until), { statesMax: states, coverage: false, liveness: false });
}

/** With every guard on: these are the protocol's own arrows, whatever deviates. */
const SOUND: readonly Look[] = [
  { scope: 'small' },
  { scope: 'small', world: 1 },
  { scope: 'small', world: 1, but: { aborts: 1, decodeCrashes: 0 } },
  { scope: 'alone' },
  { scope: 'alone', but: { abandons: 0, losses: 0, decodeCrashes: 1 } },
  { scope: 'alone', but: { abandons: 0, prefillPages: 1 } },
  { scope: 'oversized' },
  { scope: 'handles' },
  { scope: 'prefixes', states: 30_000 },
  { scope: 'alone', fault: 'torn-write' },
  { scope: 'alone', fault: 'count-unchecked' },
];

/** What only happens where an earlier guard is off, and the look that shows it. */
const LAST_GUARDS: readonly { readonly arrow: string; readonly look: Look }[] = [
  {
    arrow: 'Gateway open --started--> closing',
    look: { scope: 'alone', fault: 'count-unchecked', guards: ['usage'] },
  },
  {
    arrow: 'Decode decoding --readBegin--> idle',
    look: { scope: 'handles', states: 40_000, fault: 'stale-handle', guards: ['tag'] },
  },
  {
    arrow: 'Decode reading --readEnd--> idle',
    look: { scope: 'restarts', states: 300_000, fault: 'unfenced-restart', guards: ['tag'] },
  },
];

test('the arrows of the diagrams are the transitions that verify sees, and the other way round', () => {
  const arrows = drawn();
  const seen = new Set<string>();
  for (const one of SOUND) look(seen, one);
  const undrawn = [...seen].filter((arrow) => !isLoop(arrow) && !arrows.has(arrow));
  for (const { arrow, look: one } of LAST_GUARDS) {
    assert.ok(!seen.has(arrow), `${arrow} happens with every guard on, and needs no look of its own`);
    look(seen, one, [arrow]);
    if (!arrows.has(arrow)) undrawn.push(arrow);
  }
  const unseen = [...arrows].filter((arrow) => !seen.has(arrow));
  assert.deepEqual({ unseen, undrawn }, { unseen: [], undrawn: [] });
});
