/** A counterexample for people: the life of each page in one sentence, a sequence diagram in text, and the pool at each step. */
import { listAt, PageState, PG, pageAt, slotAt, DS } from '../handoff/layout.js';
import { DecodePhase } from '../handoff/decode.js';
import { ACTION_INDEX_MAX } from './model.js';
import type { HandoffModel } from './models/handoff.js';
import { A } from './models/handoff-actions.js';
import { ENV, ownerSlot } from './models/handoff-record.js';
import { replayPath } from './explore.js';

export interface Story {
  /** "page 0: leased to A at step 3, freed at step 5 (abort), …", for each page that a request had to do with. */
  readonly pages: readonly string[];
  /** One line a step: number, who, what, and decode's pool after it. */
  readonly steps: readonly string[];
  readonly diagram: readonly string[];
}

const NAMES = 'ABCD';
const STATE_LETTERS = ['.', 'L', 'D', 'S'] as const;

interface PageLook {
  readonly state: number;
  readonly owner: string;
  readonly content: number;
  readonly writer: string;
  readonly isRead: boolean;
}

/** Tells the path again from the first state. */
export function tell(model: HandoffModel, path: readonly number[]): Story {
  const pageCount = model.scope.decodePages;
  const lives: string[][] = Array.from({ length: pageCount }, () => []);
  const owners: Set<string>[] = Array.from({ length: pageCount }, () => new Set());
  const steps: string[] = [];
  const diagram: string[] = [`      ${COLUMNS.map((name) => name.padEnd(WIDTH)).join('')}`];
  let before = look(model);
  let said = '';
  let drawn = '';
  const close = (step: number): void => {
    const after = look(model);
    for (let page = 0; page < pageCount; page++) {
      const sentence = changeOf(before[page] as PageLook, after[page] as PageLook);
      if (sentence !== null) lives[page]?.push(`${sentence} at step ${step}`);
      const one = after[page] as PageLook;
      for (const name of [one.owner, one.content === 0 ? '' : one.writer]) if (name !== '') owners[page]?.add(name);
    }
    steps.push(`${String(step).padStart(3)}. ${said.padEnd(64)} ${map(after)}`);
    diagram.push(`${String(step).padStart(4)}  ${drawn}`);
    before = after;
  };
  replayPath(model, path, (step, action) => {
    if (step > 0) close(step);
    said = model.inWords(action);
    drawn = arrow(model, action);
  });
  close(path.length);
  const pages = lives
    .map((life, page) => `page ${page} was ${life.join(', ')}`)
    .filter((_, page) => (owners[page]?.size ?? 0) > 0);
  return { pages, steps, diagram };
}

/** The request that uses the slot now, by its letter. */
function nameOf(model: HandoffModel, slot: number): string {
  return NAMES[model.cells[model.record.env + ENV.requestOf + slot]] ?? '?';
}

function look(model: HandoffModel): PageLook[] {
  const { decode, words, content } = model.record;
  return Array.from({ length: model.scope.decodePages }, (_, page) => {
    const at = pageAt(decode, page);
    const owner = decode.cells[at + PG.owner];
    const lies = words[content + page];
    return {
      state: decode.cells[at + PG.state],
      owner: owner === 0 ? '' : nameOf(model, owner - 1),
      content: lies,
      writer: lies === 0 ? '' : nameOf(model, ownerSlot(lies)),
      isRead: readersOf(model, page),
    };
  });
}

function readersOf(model: HandoffModel, page: number): boolean {
  const { decode } = model.record;
  for (let slot = 0; slot < model.scope.slots; slot++) {
    const at = slotAt(decode, slot);
    if (decode.cells[at + DS.phase] !== DecodePhase.reading) continue;
    const list = listAt(decode, slot, 0);
    for (let place = 0; place < decode.cells[at + DS.held]; place++)
      if (decode.cells[list + place] === page) return true;
  }
  return false;
}

function changeOf(before: PageLook, after: PageLook): string | null {
  const parts: string[] = [];
  if (before.state !== after.state || before.owner !== after.owner) {
    if (after.state === PageState.free) parts.push(before.owner === '' ? 'freed' : `freed by ${before.owner}`);
    else if (after.state === PageState.draining) parts.push(`kept for ${after.owner} while it drains`);
    else if (after.state === PageState.sealed) parts.push('sealed');
    else parts.push(`leased to ${after.owner}`);
  }
  if (before.content !== after.content && after.content !== 0) parts.push(`written for ${after.writer}`);
  if (!before.isRead && after.isRead) parts.push(`read by ${after.owner === '' ? 'somebody' : after.owner}`);
  return parts.length === 0 ? null : parts.join(' and ');
}

/** `[A:L B:D .]`: owner and state of each page of decode (L leased, D draining, S sealed, . free), then whose bytes lie there. */
function map(pages: readonly PageLook[]): string {
  const ledger = pages.map(({ state, owner }) => (state === PageState.free ? '.' : `${owner}:${STATE_LETTERS[state]}`));
  const memory = pages.map(({ content, writer }) => (content === 0 ? '.' : writer));
  return `decode [${ledger.join(' ')}] holds [${memory.join(' ')}]`;
}

const COLUMNS = ['client', 'gateway', 'prefill', 'decode'] as const;
const WIDTH = 14;

/** Who acts, drawn under the names: an arrow for a message or a write, a mark for what somebody does alone. */
function arrow(model: HandoffModel, action: number): string {
  const kind = (action / ACTION_INDEX_MAX) | 0;
  const words = model.inWords(action);
  if (kind === A.land || kind === A.tear) return `${draw(2, 3)}${words}`;
  if (kind === A.deliver || kind === A.repeat || kind === A.lose) {
    const to = words.includes(' to gateway') ? 1 : words.includes(' to prefill') ? 2 : 3;
    const from = senderOf(words, to);
    return `${draw(from, to)}${words}`;
  }
  if (kind === A.submit || kind === A.clientGone) return `${draw(0, 1)}${words}`;
  const who = words.startsWith('prefill') ? 2 : words.startsWith('gateway') ? 1 : 3;
  return `${' '.repeat(WIDTH * who)}*${' '.repeat(WIDTH * (COLUMNS.length - who) - 1)}${words}`;
}

/** Kinds say who sent them: the gateway starts and aborts, prefill completes, rejects and drains, decode leases and starts. */
function senderOf(words: string, to: number): number {
  if (/: (start|abort) /.test(words)) return 1;
  if (to === 1) return /: prefill/.test(words) ? 2 : 3;
  return to === 2 ? 3 : 2;
}

function draw(from: number, to: number): string {
  const [left, right] = from < to ? [from, to] : [to, from];
  const line = '-'.repeat(WIDTH * (right - left) - 1);
  const drawn = from < to ? `${line}>` : `<${line}`;
  return `${' '.repeat(WIDTH * left)}${drawn}${' '.repeat(WIDTH * (COLUMNS.length - right))}`;
}
