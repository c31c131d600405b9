/**
 * A way through one world, and everything there is to see at a state of it. It runs the model itself, and with it the `step` functions
 * of the engine: the page that `verify --output html` writes holds this module, compiled, and what it imports.
 */
import { ACTION_INDEX_MAX, ACTIONS_MAX, ALL_PARTS, type Broken } from '../model.js';
import { A, ACTION_KEYS } from '../models/handoff-actions.js';
import { HandoffModel } from '../models/handoff.js';
import type { PropertyStatus } from '../models/handoff-properties.js';
import type { HandoffScope } from '../models/handoff-scope.js';
import { type Lane, type Telling, tell } from '../models/handoff-words.js';
import { RequestNames, type Story, storyOf } from '../story.js';
import { type PageView, pagesOf, type SlotView, slotsOf, type TroubleView, troublesOf } from './look.js';
import { type WayToSettle, wayToSettle } from './settle.js';

/** One world of the page, and what the checker said of it. */
export interface PageWorld {
  readonly title: string;
  /** The fault and the guards, in words. */
  readonly rules: string;
  readonly scope: HandoffScope;
  /** What was found, in words. */
  readonly found: string;
  /** The counterexample; empty: none. */
  readonly path: readonly number[];
  /** What is broken at the end of `path`; null: nothing. */
  readonly end: Broken | null;
}

/** All that the page is made of beside its code. */
export interface PageData {
  readonly title: string;
  readonly words: string;
  readonly worlds: readonly PageWorld[];
}

/** Something that can happen now. */
export interface Choice extends Telling {
  readonly action: number;
  readonly kind: string;
  /** False: the world's doing, such as a client that leaves. */
  readonly isProgress: boolean;
}

/** Something on the wire, with what can become of it. */
export interface Flight {
  readonly from: Lane;
  readonly to: Lane;
  readonly label: string;
  readonly words: string;
  readonly isWrite: boolean;
  readonly choices: readonly Choice[];
}

export interface StateView {
  /** Steps before this state. */
  readonly at: number;
  readonly story: Story;
  readonly slots: readonly SlotView[];
  readonly prefill: readonly PageView[];
  readonly decode: readonly PageView[];
  readonly flights: readonly Flight[];
  /** What can happen beside the wire. */
  readonly choices: readonly Choice[];
  readonly properties: readonly PropertyStatus[];
  readonly sometimes: readonly { readonly name: string; readonly holds: boolean }[];
  readonly settled: boolean;
  readonly troubles: readonly TroubleView[];
  /** The first broken invariant that counts in this world. */
  readonly broken: Broken | null;
}

const kindOf = (action: number): number => (action / ACTION_INDEX_MAX) | 0;

export class Walk {
  readonly world: PageWorld;
  readonly model: HandoffModel;
  #path: readonly number[] = [];
  #at = 0;
  readonly #possible = new Int32Array(ACTIONS_MAX);

  constructor(world: PageWorld) {
    this.world = world;
    this.model = new HandoffModel(world.scope);
  }

  get path(): readonly number[] {
    return this.#path;
  }

  get at(): number {
    return this.#at;
  }

  /** Goes along the path as far as its steps are possible, and stands behind step `at` of it. Returns how many were. */
  follow(path: readonly number[], at: number = path.length): number {
    const { model } = this;
    model.init();
    let taken = 0;
    while (taken < path.length && this.#isPossible(path[taken])) model.next(path[taken++]);
    this.#path = path.slice(0, taken);
    this.go(at);
    return taken;
  }

  /** Stands behind step `at`, or at the nearest end. */
  go(at: number): void {
    this.#at = Math.min(Math.max(0, Math.trunc(at)), this.#path.length);
  }

  /** Takes an action here; what came after on the path is another way and is left. False: it is not possible here. */
  choose(action: number): boolean {
    this.#enter();
    if (!this.#isPossible(action)) return false;
    if (this.#path[this.#at] !== action) this.#path = [...this.#path.slice(0, this.#at), action];
    this.#at++;
    return true;
  }

  /** How the world's own path, or as much of it as means the same there, goes in another world. */
  carryTo(other: Walk): number {
    const { model } = this;
    model.init();
    other.model.init();
    const common: number[] = [];
    for (const action of this.#path) {
      if (!other.#isPossible(action) || model.inWords(action) !== other.model.inWords(action)) break;
      model.next(action);
      other.model.next(action);
      common.push(action);
    }
    other.follow(common, this.#at);
    return common.length;
  }

  /** The shortest way from here by the system's own steps to a state in which nothing is open. */
  settle(): WayToSettle {
    this.#enter();
    return wayToSettle(this.model);
  }

  look(): StateView {
    const { model } = this;
    const story = storyOf(model, this.#path, this.world.end?.words ?? '');
    const names = this.#enter();
    const choices = this.#choices(names);
    const isOfWire = ({ action }: Choice): boolean => kindOf(action) <= A.tear;
    const { properties } = model;
    return {
      at: this.#at,
      story,
      slots: slotsOf(model, names),
      ...pagesOf(model, names),
      flights: flightsOf(choices.filter(isOfWire)),
      choices: choices.filter((choice) => !isOfWire(choice)),
      properties: properties.statuses(),
      sometimes: properties.sometimes.map((seen) => ({ name: seen.name, holds: seen.holds() })),
      settled: properties.settled(),
      troubles: troublesOf(model),
      broken: properties.always(ALL_PARTS),
    };
  }

  /** Brings the model to the state behind step `at`. */
  #enter(): RequestNames {
    const { model } = this;
    const names = new RequestNames(model);
    model.init();
    for (const action of this.#path.slice(0, this.#at)) {
      model.next(action);
      names.learn();
    }
    return names;
  }

  #isPossible(action: number): boolean {
    const count = this.model.actions(this.#possible);
    return this.#possible.subarray(0, count).includes(action);
  }

  #choices(names: RequestNames): Choice[] {
    const { model } = this;
    const count = model.actions(this.#possible);
    return Array.from(this.#possible.subarray(0, count), (action) => {
      const { name, isProgress } = model.kinds[kindOf(action)];
      const telling = tell(model.record, action, (slot, attempt) => names.of(slot, attempt));
      return { ...telling, action, kind: name, isProgress };
    });
  }
}

/** Messages and writes, each once, with what can become of it. The choices of one follow each other. */
function flightsOf(choices: readonly Choice[]): Flight[] {
  const flights = new Map<string, Choice[]>();
  for (const choice of choices) {
    const key = `${choice.isWrite ? 'write' : 'message'} ${choice.action % ACTION_INDEX_MAX}`;
    flights.set(key, [...(flights.get(key) ?? []), choice]);
  }
  return [...flights.values()].map((own) => {
    const [{ from, to, label, words, isWrite }] = own;
    return { from, to, label, words, isWrite, choices: own };
  });
}

/** Where somebody stands: the page's address holds it. */
export interface Link {
  /** Index of the world. */
  readonly world: number;
  readonly at: number;
  readonly path: readonly number[];
}

/** Steps that an address may hold. */
export const LINK_STEPS_MAX = 2000;

/** `#1/2/submit0,deliver0`: world, place on the path, and its actions by name and index. */
export function formatLink({ world, at, path }: Link): string {
  const steps = path.map((action) => `${ACTION_KEYS[kindOf(action)]}${action % ACTION_INDEX_MAX}`);
  return `#${world}/${at}/${steps.join(',')}`;
}

/** Null: it is not an address of this page. */
export function parseLink(text: string): Link | null {
  const found = /^#(\d{1,3})\/(\d{1,4})\/([a-zA-Z0-9,]*)$/.exec(text);
  if (found === null) return null;
  const [, world, at, steps] = found;
  const path: number[] = [];
  for (const step of steps === '' ? [] : steps.split(',')) {
    const parts = /^([a-zA-Z]+)(\d{1,2})$/.exec(step);
    const kind = parts === null ? -1 : (ACTION_KEYS as readonly string[]).indexOf(parts[1]);
    const index = parts === null ? 0 : Number(parts[2]);
    if (kind < 0 || index >= ACTION_INDEX_MAX || path.length >= LINK_STEPS_MAX) return null;
    path.push(kind * ACTION_INDEX_MAX + index);
  }
  return { world: Number(world), at: Number(at), path };
}
