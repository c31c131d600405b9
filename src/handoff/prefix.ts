/** What both pools decide alike: whether a request can ever fit, and which sealed pages a slot may share. */
import { FAULT, GUARD, deviates, guardHit } from './rules.js';
import { PageState, PG, pageAt, type View } from './layout.js';
import { E, type Out } from './messages.js';

/** Whether a pool can ever hold the request: its prompt, and prompt and output together. Shared by both pools. */
export function fits(view: View, promptPages: number, pages: number): boolean {
  return promptPages >= 1 && promptPages <= pages && pages <= view.shape.pages && pages <= view.shape.pagesPerSlot;
}

/**
 * Links sealed pages (page, hash), as the index proposes them, to the first places of the slot, for as long as each is sealed, has
 * the hash asked for, and belongs to the tenant under its salt. Shared by both pools.
 */
export function takePrefix(
  view: View,
  list: number,
  placesMax: number,
  prefixCell: number,
  tenantCell: number,
  saltCell: number,
  event: Int32Array,
  out: Out,
): void {
  const { cells, shape } = view;
  if (!shape.prefixes || cells[prefixCell] !== 0) return;
  for (let i = 0; i < event[E.count] && i < placesMax; i++) {
    const page = event[E.list + 2 * i];
    if (!(page >= 0 && page < shape.pages)) return;
    const cell = pageAt(view, page);
    if (cells[cell + PG.state] !== PageState.sealed) return;
    const isSameHash =
      cells[cell + PG.hash] === event[E.list + 2 * i + 1] || deviates(view, FAULT['prefix-hash-collision'], GUARD.salt);
    const isOwn = cells[cell + PG.tenant] === cells[tenantCell] && cells[cell + PG.salt] === cells[saltCell];
    const isShared =
      deviates(view, FAULT['unsalted-prefix'], GUARD.salt) ||
      deviates(view, FAULT['prefix-hash-collision'], GUARD.salt);
    if (isSameHash && !isOwn && !isShared) guardHit(out, GUARD.salt, event[E.slot]);
    if (!isSameHash || !(isOwn || isShared)) return;
    cells[cell + PG.refs]++;
    cells[list + i] = page;
    cells[prefixCell]++;
  }
}
