/** How decode's slots give their pages back: freed under new epochs, sealed for the tenant, or left to who shares them. */
import { DS, listAt, PageState, PG, pageAt, slotAt, type View } from './layout.js';
import { dropPrefix, freePage, sealPage } from './ledger.js';
import { E, EffectKind, emit, type Out } from './messages.js';

/** Gives the slot's pages back, under new epochs; prefix pages lose a reader; listed places are sealed for the tenant. */
export function release(view: View, slot: number, event: Int32Array | null, out: Out): void {
  const { cells } = view;
  const at = slotAt(view, slot);
  const list = listAt(view, slot, 0);
  const held = cells[at + DS.held];
  const prefix = cells[at + DS.prefix];
  if (cells[at + DS.attached] === 1) {
    cells.fill(0, list, list + held);
  } else {
    if (event !== null && view.shape.prefixes) sealListed(view, slot, list, prefix, held, event, out);
    for (let place = held - 1; place >= prefix; place--) {
      const page = cells[list + place];
      if (cells[pageAt(view, page) + PG.state] !== PageState.sealed) freePage(view, page);
      cells[list + place] = 0;
    }
    dropPrefix(view, list, prefix);
  }
  cells[at + DS.held] = 0;
  cells[at + DS.prefix] = 0;
  cells[at + DS.attached] = 0;
  if (held > 0) emit(out, EffectKind.pagesFreed, 0, slot);
}

function sealListed(
  view: View,
  slot: number,
  list: number,
  prefix: number,
  held: number,
  event: Int32Array,
  out: Out,
): void {
  const at = slotAt(view, slot);
  for (let i = 0; i < event[E.count]; i++) {
    const place = event[E.list + 2 * i];
    if (place < prefix || place >= held) continue;
    const page = view.cells[list + place];
    if (view.cells[pageAt(view, page) + PG.state] !== PageState.leased) continue;
    const hash = event[E.list + 2 * i + 1];
    sealPage(view, page, view.cells[at + DS.tenant], view.cells[at + DS.salt], hash);
    const effect = emit(out, EffectKind.seal, 0, slot);
    out.cells[effect + E.pages] = page;
    out.cells[effect + E.code] = hash;
  }
}
