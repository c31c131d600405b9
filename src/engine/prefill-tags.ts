/** The tags that prefill writes: of the pages that it posts, and of those that it keeps for the tenant. */
import { getSlot, listAt, PG, pageAt, type View } from '../handoff/layout.js';
import { EPOCH } from '../handoff/prefill.js';
import { newPageTag, OWNER_LEASE, OWNER_TENANT, type PageTag } from '../kv/tag.js';

/** Who writes, and at which of its steps. */
export interface Writer {
  readonly incarnation: number;
  readonly step: number;
}

/** Of a posted page: what decode's lease must find in it. */
export function postedTag(view: View, slot: number, place: number, filled: number, writer: Writer): PageTag {
  const tag = newPageTag();
  tag.ownerKind = OWNER_LEASE;
  tag.owner = slot;
  tag.attempt = getSlot(view, slot, 'attempt');
  tag.incarnation = getSlot(view, slot, 'peer');
  tag.epoch = view.cells[listAt(view, slot, EPOCH) + place] ?? 0;
  tag.place = place;
  tag.filled = filled;
  tag.writer = writer.incarnation;
  tag.writtenAtStep = writer.step;
  return tag;
}

/** Of a page of prefill's own pool that belongs to the tenant from now on. */
export function sealedTag(
  view: View,
  slot: number,
  page: number,
  place: number,
  filled: number,
  writer: Writer,
): PageTag {
  const tag = newPageTag();
  tag.ownerKind = OWNER_TENANT;
  tag.owner = getSlot(view, slot, 'tenant');
  tag.incarnation = writer.incarnation;
  tag.epoch = view.cells[pageAt(view, page) + PG.epoch] ?? 0;
  tag.place = place;
  tag.filled = filled;
  tag.writer = writer.incarnation;
  tag.writtenAtStep = writer.step;
  return tag;
}
