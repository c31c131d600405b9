/** A state of the world as a person wants to see it: requests, pages, what may still go wrong. */
import { DecodePhase } from '../../handoff/decode.js';
import { GatewayPhase } from '../../handoff/gateway.js';
import { DS, GS, listAt, PageState, PG, pageAt, slotAt, type View } from '../../handoff/layout.js';
import { resultName } from '../../handoff/messages.js';
import { PrefillPhase } from '../../handoff/prefill.js';
import type { HandoffModel } from '../models/handoff.js';
import { ENV, ownerAttempt, ownerSlot, SEALED, sealedTenant, SPOILT, TORN } from '../models/handoff-record.js';
import type { RequestNames } from '../story.js';

export interface SlotView {
  readonly slot: number;
  /** A letter; the same that the steps use. */
  readonly request: string;
  readonly tenant: number;
  readonly attempt: number;
  readonly gateway: string;
  readonly prefill: string;
  readonly decode: string;
  /** What the client got; empty: nothing yet. */
  readonly result: string;
  /** False: nothing of it is open anywhere. */
  readonly isOpen: boolean;
}

export type PageStateName = keyof typeof PageState;
/** What lies in a page of decode, beside whose page it is. `stale`: not what its holder wrote, or of an earlier use of it. */
export type ContentName = 'none' | 'own' | 'stale' | 'torn' | 'sealed' | 'spoilt';

export interface PageView {
  readonly page: number;
  readonly state: PageStateName;
  /** The letter of the request that holds it; of a sealed page its tenant's number; empty: nobody. */
  readonly owner: string;
  readonly epoch: number;
  /** Null: prefill's pages, of which only the holder is modelled. */
  readonly content: { readonly name: ContentName; readonly of: string } | null;
  /** Those who decode over it just now, and whether it holds what is theirs to read. */
  readonly readers: readonly { readonly request: string; readonly isOwn: boolean }[];
}

/** A trouble that the world still has in store. */
export interface TroubleView {
  readonly words: string;
  readonly left: number;
  readonly of: number;
}

const nameOf = (names: Readonly<Record<string, number>>, value: number): string =>
  Object.keys(names).find((name) => names[name] === value) ?? `phase ${value}`;

export function slotsOf(model: HandoffModel, names: RequestNames): SlotView[] {
  const { gateway, prefill, decode } = model.record;
  return Array.from({ length: gateway.shape.slots }, (_, slot) => {
    const at = slotAt(gateway, slot);
    const phases = [gateway, prefill, decode].map((view) => view.cells[slotAt(view, slot)]);
    const result = gateway.cells[at + GS.result];
    const wasUsed = gateway.cells[at + GS.attempt] > 0;
    return {
      slot,
      request: wasUsed ? names.inSlot(slot) : '',
      tenant: gateway.cells[at + GS.tenant],
      attempt: gateway.cells[at + GS.attempt],
      gateway: nameOf(GatewayPhase, phases[0]),
      prefill: nameOf(PrefillPhase, phases[1]),
      decode: nameOf(DecodePhase, phases[2]),
      result: result === 0 ? '' : resultName(result),
      isOpen: phases.some((phase) => phase !== 0),
    };
  });
}

export function pagesOf(model: HandoffModel, names: RequestNames): { prefill: PageView[]; decode: PageView[] } {
  const { record } = model;
  const pool = (view: View, hasContent: boolean): PageView[] =>
    Array.from({ length: view.shape.pages }, (_, page) => {
      const at = pageAt(view, page);
      const state = nameOf(PageState, view.cells[at + PG.state]) as PageStateName;
      const holder = view.cells[at + PG.owner];
      const owner =
        state === 'free' ? '' : state === 'sealed' ? `tenant ${view.cells[at + PG.tenant]}` : names.inSlot(holder - 1);
      const epoch = view.cells[at + PG.epoch];
      const content = hasContent ? contentOf(model, names, page, holder - 1) : null;
      return { page, state, owner, epoch, content, readers: hasContent ? readersOf(model, names, page) : [] };
    });
  return { prefill: pool(record.prefill, false), decode: pool(record.decode, true) };
}

function contentOf(
  model: HandoffModel,
  names: RequestNames,
  page: number,
  holder: number,
): NonNullable<PageView['content']> {
  const word = model.record.words[model.record.content + page];
  if (word === 0) return { name: 'none', of: '' };
  if ((word & SEALED) !== 0) {
    return { name: (word & SPOILT) === 0 ? 'sealed' : 'spoilt', of: `tenant ${sealedTenant(word)}` };
  }
  const of = names.of(ownerSlot(word), ownerAttempt(word));
  if ((word & TORN) !== 0) return { name: 'torn', of };
  return { name: isHolders(model, page, holder) ? 'own' : 'stale', of };
}

/** The place of decode's page in the slot's list; -1: the slot does not hold it. */
function placeOf(model: HandoffModel, page: number, slot: number): number {
  const { decode } = model.record;
  const held = decode.cells[slotAt(decode, slot) + DS.held];
  const list = listAt(decode, slot, 0);
  for (let place = 0; place < held; place++) if (decode.cells[list + place] === page) return place;
  return -1;
}

/** Whether the page holds what its holder is to read there. */
function isHolders(model: HandoffModel, page: number, holder: number): boolean {
  const place = holder < 0 ? -1 : placeOf(model, page, holder);
  return place >= 0 && model.holdsOwn(holder, place);
}

function readersOf(model: HandoffModel, names: RequestNames, page: number): PageView['readers'] {
  const { decode } = model.record;
  const readers: { request: string; isOwn: boolean }[] = [];
  for (let slot = 0; slot < decode.shape.slots; slot++) {
    const at = slotAt(decode, slot);
    const phase = decode.cells[at + DS.phase];
    const place = placeOf(model, page, slot);
    const isRead = phase === DecodePhase.decoding || phase === DecodePhase.reading;
    // What lies behind the prompt is decode's own to write.
    if (!isRead || place < 0 || place >= decode.cells[at + DS.promptPages]) continue;
    readers.push({ request: names.inSlot(slot), isOwn: model.holdsOwn(slot, place) });
  }
  return readers;
}

const TROUBLES = [
  ['aborts', 'a client leaves'],
  ['losses', 'a message is lost'],
  ['repeats', 'a message is delivered twice'],
  ['prefillCrashes', 'prefill restarts'],
  ['decodeCrashes', 'decode restarts'],
  ['abandons', 'prefill gives up'],
  ['handles', 'a handle names a page'],
  ['tears', 'a write lands torn'],
] as const;

/** Those that the scope allows at all. */
export function troublesOf(model: HandoffModel): TroubleView[] {
  const { cells, env } = model.record;
  return TROUBLES.map(([name, words]) => ({ words, left: cells[env + ENV[name]], of: model.scope[name] })).filter(
    ({ of }) => of > 0,
  );
}
