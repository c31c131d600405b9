/** A counterexample, told: every step in words, decode's pages after it, and what became of the pages that matter. */
import { DecodePhase } from '../handoff/decode.js';
import { GatewayPhase } from '../handoff/gateway.js';
import { DS, listAt, PageState, PG, pageAt, slotAt, type View } from '../handoff/layout.js';
import { PrefillPhase } from '../handoff/prefill.js';
import { ACTION_INDEX_MAX } from './model.js';
import { A } from './models/handoff-actions.js';
import type { HandoffModel } from './models/handoff.js';
import { ENV, ownerAttempt, ownerSlot, SEALED, sealedTenant, TORN } from './models/handoff-record.js';
import { letterOf, type Telling, tell } from './models/handoff-words.js';

export interface StoryStep extends Telling {
  /** From 1. */
  readonly step: number;
  /** Both pools after the step: two characters a page, its owner and whose content it holds. */
  readonly prefillMap: string;
  readonly decodeMap: string;
}

export interface Story {
  readonly steps: readonly StoryStep[];
  /** What became of each page that matters, one sentence each. */
  readonly pages: readonly string[];
  /** The invariant that broke, in words. */
  readonly end: string;
  /** Where each slot stands at the end. */
  readonly stand: readonly string[];
}

interface PageCells {
  readonly state: number;
  readonly owner: number;
  readonly content: number;
}

interface PageNote {
  readonly page: number;
  readonly words: string;
}

/** Which request a slot and an attempt stand for: learned on the way, since a slot is used again. */
export class RequestNames {
  readonly #model: HandoffModel;
  readonly #names = new Map<string, string>();

  constructor(model: HandoffModel) {
    this.#model = model;
  }

  /** The letter of the request that the slot holds, or held last. */
  inSlot(slot: number): string {
    return letterOf(this.#model.cells[this.#model.record.env + ENV.requestOf + slot]);
  }

  of(slot: number, attempt: number): string {
    return this.#names.get(`${slot}.${attempt}`) ?? this.inSlot(slot);
  }

  /** After each step. */
  learn(): void {
    const { gateway } = this.#model.record;
    for (let slot = 0; slot < gateway.shape.slots; slot++) {
      const attempt = gateway.cells[slotAt(gateway, slot) + 1];
      const key = `${slot}.${attempt}`;
      if (attempt > 0 && !this.#names.has(key)) this.#names.set(key, this.inSlot(slot));
    }
  }
}

/** Tells the way to a broken state. `end` is what the explorer said of it. */
export function storyOf(model: HandoffModel, path: readonly number[], end: string): Story {
  return new Storyteller(model).tell(path, end);
}

class Storyteller {
  readonly #model: HandoffModel;
  readonly #decode: View;
  readonly #names: RequestNames;
  readonly #notes: PageNote[] = [];

  constructor(model: HandoffModel) {
    this.#model = model;
    this.#decode = model.record.decode;
    this.#names = new RequestNames(model);
  }

  tell(path: readonly number[], end: string): Story {
    const model = this.#model;
    const steps: StoryStep[] = [];
    model.init();
    for (const [at, action] of path.entries()) {
      const telling = tell(model.record, action, (slot, attempt) => this.#nameOf(slot, attempt));
      const before = this.#pages();
      model.next(action);
      this.#names.learn();
      this.#note(at + 1, action, telling, before);
      steps.push({ ...telling, step: at + 1, prefillMap: this.#prefillMap(), decodeMap: this.#decodeMap() });
    }
    const matter = this.#pagesThatMatter();
    const pages = matter
      .map((page) => this.#notes.filter((note) => note.page === page).map(({ words }) => words))
      .map((words, index) => (words.length === 0 ? '' : `page ${matter[index]} of decode was ${words.join(', ')}`))
      .filter((words) => words !== '');
    return { steps, pages, end, stand: this.#stand() };
  }

  #requestIn(slot: number): string {
    return this.#names.inSlot(slot);
  }

  #nameOf(slot: number, attempt: number): string {
    return this.#names.of(slot, attempt);
  }

  #pages(): PageCells[] {
    const { words, content } = this.#model.record;
    return Array.from({ length: this.#decode.shape.pages }, (_, page) => {
      const at = pageAt(this.#decode, page);
      const { cells } = this.#decode;
      return { state: cells[at + PG.state], owner: cells[at + PG.owner], content: words[content + page] };
    });
  }

  #note(step: number, action: number, telling: Telling, before: readonly PageCells[]): void {
    const kind = (action / ACTION_INDEX_MAX) | 0;
    for (const [page, after] of this.#pages().entries()) {
      const was = before[page];
      const add = (words: string): void => void this.#notes.push({ page, words: `${words} at step ${step}` });
      const owner = (cell: number): string => this.#requestIn(cell - 1);
      if (after.content !== was.content && telling.isWrite) {
        const isLate = after.owner !== ownerSlot(after.content) + 1;
        const name = this.#nameOf(ownerSlot(after.content), ownerAttempt(after.content));
        add(`written by ${name}'s ${isLate ? 'late ' : ''}${(after.content & TORN) !== 0 ? 'torn ' : ''}chunk`);
      }
      if (was.state !== PageState.free && after.state === PageState.free) {
        const whose = was.owner > 0 ? ` of ${owner(was.owner)}` : '';
        add(`freed by ${causeOf(kind, telling)}${whose}`);
      } else if (was.state !== PageState.draining && after.state === PageState.draining) {
        add(`set to drain by ${causeOf(kind, telling)} of ${owner(after.owner)}`);
      } else if (was.state === PageState.leased && after.state === PageState.sealed) {
        add(`sealed for the tenant of ${owner(was.owner)}`);
      }
      if (was.state === PageState.free && after.state === PageState.leased) add(`leased to ${owner(after.owner)}`);
      if ((kind === A.readBegin || kind === A.readEnd) && this.#reads(telling.slot, page)) {
        add(`${kind === A.readBegin ? 'read' : 'read to the end'} by ${this.#requestIn(telling.slot)}`);
      }
      if (kind === A.decodeHit && this.#reads(telling.slot, page)) add(`shared by ${this.#requestIn(telling.slot)}`);
      if (kind === A.attach && this.#reads(telling.slot, page))
        add(`taken by the handle of ${this.#requestIn(telling.slot)}`);
    }
  }

  #reads(slot: number, page: number): boolean {
    const { cells } = this.#decode;
    const held = cells[slotAt(this.#decode, slot) + DS.held];
    const list = listAt(this.#decode, slot, 0);
    for (let place = 0; place < held; place++) if (cells[list + place] === page) return true;
    return false;
  }

  /** Pages that a slot reads or shares and that hold what is not its own; else those that are not free. */
  #pagesThatMatter(): number[] {
    const { cells, shape } = this.#decode;
    const foreign = new Set<number>();
    const held = new Set<number>();
    for (let slot = 0; slot < shape.slots; slot++) {
      const at = slotAt(this.#decode, slot);
      const isRead = cells[at + DS.phase] === DecodePhase.decoding || cells[at + DS.phase] === DecodePhase.reading;
      for (let place = 0; place < cells[at + DS.held]; place++) {
        const page = cells[listAt(this.#decode, slot, 0) + place];
        held.add(page);
        const isShared =
          place < cells[at + DS.prefix] && cells[pageAt(this.#decode, page) + PG.tenant] !== cells[at + DS.tenant];
        if ((isRead && !this.#model.holdsOwn(slot, place)) || isShared) foreign.add(page);
      }
    }
    return [...(foreign.size > 0 ? foreign : held)].sort((a, b) => a - b);
  }

  #ownerLetter(state: number, owner: number): string {
    if (state === PageState.free) return '.';
    if (state === PageState.sealed) return '#';
    const letter = this.#requestIn(owner - 1);
    return state === PageState.draining ? letter.toLowerCase() : letter;
  }

  #decodeMap(): string {
    return this.#pages()
      .map(({ state, owner, content }) => this.#ownerLetter(state, owner) + this.#contentLetter(content))
      .join(' ');
  }

  #contentLetter(content: number): string {
    if (content === 0) return '-';
    if ((content & SEALED) !== 0) return String(sealedTenant(content));
    const letter = this.#nameOf(ownerSlot(content), ownerAttempt(content)).toLowerCase();
    return (content & TORN) !== 0 ? '!' : letter;
  }

  #stand(): string[] {
    const { gateway, prefill, decode } = this.#model.record;
    const stand = (slot: number): string => {
      const phase = (view: View, names: Readonly<Record<string, number>>): string =>
        Object.keys(names).find((name) => names[name] === view.cells[slotAt(view, slot)]) ?? '?';
      const held = decode.cells[slotAt(decode, slot) + DS.held];
      return `${this.#requestIn(slot)}: gateway ${phase(gateway, GatewayPhase)}, prefill ${phase(prefill, PrefillPhase)}, decode ${phase(decode, DecodePhase)} with ${held} pages`;
    };
    const isIdle = (slot: number): boolean =>
      [gateway, prefill, decode].every((view) => view.cells[slotAt(view, slot)] === 0);
    return Array.from({ length: gateway.shape.slots }, (_, slot) => (isIdle(slot) ? '' : stand(slot))).filter(Boolean);
  }

  #prefillMap(): string {
    const { prefill } = this.#model.record;
    return Array.from({ length: prefill.shape.pages }, (_, page) => {
      const at = pageAt(prefill, page);
      return this.#ownerLetter(prefill.cells[at + PG.state], prefill.cells[at + PG.owner]);
    }).join('');
  }
}

function causeOf(kind: number, telling: Telling): string {
  if (kind === A.timeout) return 'the timeout';
  if (kind === A.finish) return 'the end';
  if (kind === A.decodeLearnsPrefill) return "prefill's restart, and taken from the lease";
  if (kind === A.decodeEvict) return 'an eviction';
  return `the ${telling.label.split(' ')[0]}`;
}
