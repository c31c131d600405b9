/**
 * What is interchangeable in the handoff's world: requests that are alike but for their names (and with them their tenants), and the
 * pages of each pool. Requests are renamed in every way there is; pages get the one naming that follows from who holds them, in the
 * order of slots, places and the free list. The machines only compare names, so that what can happen to a state can happen to its image
 * as well. Slots are not interchangeable: the lowest free one is taken.
 */
import { FAULTS } from '../../handoff/faults.js';
import { DS, FREE_HEAD, GS, listAt, PG, PS, pageAt, slotAt, type View } from '../../handoff/layout.js';
import { EventKind } from '../../handoff/messages.js';
import { EPOCH, PrefillPhase, SOURCE, TARGET } from '../../handoff/prefill.js';
import { ENV, mapPage, mapTenant, type WorldRecord } from './handoff-record.js';
import type { HandoffScope, ScopeRequest } from './handoff-scope.js';

/** `request[i]` is the new number of request i, `tenant[t]` of tenant t. */
interface Renaming {
  readonly request: readonly number[];
  readonly tenant: readonly number[];
}

const ROOM_SHIFT = 20;
const TENANT_SHIFT = 8;
const PAGES_MAX = 8;

export class HandoffSymmetry {
  readonly count: number;
  readonly #record: WorldRecord;
  readonly #renamings: readonly Renaming[];
  /** The fault gives all requests one room, which then is no name of theirs. */
  readonly #hasRooms: boolean;
  readonly #names = new Int8Array(PAGES_MAX);
  readonly #kept: Uint8Array;
  readonly #words = new Int32Array(PAGES_MAX);

  constructor(scope: HandoffScope, record: WorldRecord) {
    this.#record = record;
    this.#renamings = renamingsOf(scope.requests);
    this.count = this.#renamings.length;
    this.#hasRooms = (scope.rules.faults & (1 << FAULTS.indexOf('room-collision'))) === 0;
    this.#kept = new Uint8Array(PAGES_MAX * Math.max(record.prefill.shape.pageWidth, record.decode.shape.pageWidth));
  }

  /** Writes image `index` of the state over it. */
  image(index: number): void {
    const { prefill, decode } = this.#record;
    this.#forgetTheDead();
    if (index > 0) this.#renameRequests(this.#renamings[index]);
    this.#namePages(prefill, PS.held);
    this.#movePages(prefill, PS.held);
    this.#namePages(decode, DS.held);
    this.#movePages(decode, DS.held);
    this.#moveContent();
    this.#sortWrites();
    this.#sortMessages();
  }

  /** Cells that nothing reads before they are written again must not tell two states apart. */
  #forgetTheDead(): void {
    const { cells, gateway, prefill, decode, env } = this.#record;
    for (let slot = 0; slot < gateway.shape.slots; slot++) {
      const isPrefillIdle = cells[slotAt(prefill, slot) + PS.phase] === PrefillPhase.idle;
      if (isPrefillIdle) {
        const targets = listAt(prefill, slot, TARGET);
        const end = listAt(prefill, slot, EPOCH) + prefill.shape.pagesPerSlot;
        for (let at = targets; at < end; at++) cells[at] = 0;
      }
      const isOver = cells[slotAt(gateway, slot) + GS.phase] === 0 && cells[slotAt(decode, slot) + DS.phase] === 0;
      if (isPrefillIdle && isOver) cells[env + ENV.requestOf + slot] = 0;
    }
  }

  #renameRequests(renaming: Renaming): void {
    const { cells, gateway, prefill, decode, env } = this.#record;
    const { request, tenant } = renaming;
    for (let slot = 0; slot < gateway.shape.slots; slot++) {
      this.#renameSlot(slotAt(gateway, slot), GS, renaming);
      this.#renameSlot(slotAt(prefill, slot), PS, renaming);
      this.#renameSlot(slotAt(decode, slot), DS, renaming);
      if (this.#isInUse(slot)) cells[env + ENV.requestOf + slot] = request[cells[env + ENV.requestOf + slot]];
    }
    const submitted = cells[env + ENV.submitted];
    let renamed = 0;
    for (let i = 0; i < request.length; i++) if (((submitted >> i) & 1) === 1) renamed |= 1 << request[i];
    cells[env + ENV.submitted] = renamed;
    for (const view of [prefill, decode]) this.#renameTenants(view, tenant);
    this.#renameMessages(renaming);
    const { words, content } = this.#record;
    for (let page = 0; page < decode.shape.pages; page++) {
      words[content + page] = mapTenant(words[content + page], tenant);
    }
  }

  #isInUse(slot: number): boolean {
    const { cells, gateway, prefill, decode } = this.#record;
    return (
      cells[slotAt(gateway, slot) + GS.phase] !== 0 ||
      cells[slotAt(prefill, slot) + PS.phase] !== 0 ||
      cells[slotAt(decode, slot) + DS.phase] !== 0
    );
  }

  #renameSlot(
    at: number,
    fields: { readonly room: number; readonly tenant: number; readonly salt: number },
    { request, tenant }: Renaming,
  ): void {
    const { cells } = this.#record;
    const room = cells[at + fields.room];
    if (this.#hasRooms && room > 0) cells[at + fields.room] = request[room - 1] + 1;
    cells[at + fields.tenant] = tenant[cells[at + fields.tenant]];
    cells[at + fields.salt] = tenant[cells[at + fields.salt]];
  }

  #renameTenants(view: View, tenant: readonly number[]): void {
    if (!view.shape.prefixes) return;
    for (let page = 0; page < view.shape.pages; page++) {
      const at = pageAt(view, page);
      view.cells[at + PG.tenant] = tenant[view.cells[at + PG.tenant]];
      view.cells[at + PG.salt] = tenant[view.cells[at + PG.salt]];
    }
  }

  #renameMessages({ request, tenant }: Renaming): void {
    const { words, messages } = this.#record;
    for (let at = messages; at < this.#messagesEnd(); at += 2) {
      const room = (words[at] >>> ROOM_SHIFT) & 15;
      if (this.#hasRooms && room > 0) {
        words[at] = (words[at] & ~(15 << ROOM_SHIFT)) | ((request[room - 1] + 1) << ROOM_SHIFT);
      }
      const named = (words[at + 1] >>> TENANT_SHIFT) & 3;
      words[at + 1] = (words[at + 1] & ~(3 << TENANT_SHIFT)) | (tenant[named] << TENANT_SHIFT);
    }
  }

  #messagesEnd(): number {
    const { cells, env, messages } = this.#record;
    return messages + 2 * cells[env + ENV.messages];
  }

  /** Names pages in the order in which slots hold them, then free ones in the order of their list, then the rest by what they are. */
  #namePages(view: View, held: number): void {
    const { cells, shape } = view;
    const names = this.#names.fill(-1);
    let next = 0;
    for (let slot = 0; slot < shape.slots; slot++) {
      const list = listAt(view, slot, SOURCE);
      const count = cells[slotAt(view, slot) + held];
      for (let place = 0; place < count; place++) {
        if (names[cells[list + place]] < 0) names[cells[list + place]] = next++;
      }
    }
    for (let page = cells[view.at + FREE_HEAD]; page !== 0; page = cells[pageAt(view, page - 1) + PG.next]) {
      if (names[page - 1] < 0) names[page - 1] = next++;
    }
    while (next < shape.pages) names[this.#leastUnnamed(view)] = next++;
  }

  #leastUnnamed(view: View): number {
    let least = -1;
    for (let page = 0; page < view.shape.pages; page++) {
      if (this.#names[page] < 0 && (least < 0 || this.#comesBefore(view, page, least))) least = page;
    }
    return least;
  }

  #comesBefore(view: View, one: number, other: number): boolean {
    const [a, b] = [pageAt(view, one), pageAt(view, other)];
    for (let i = 0; i < view.shape.pageWidth; i++) {
      if (view.cells[a + i] !== view.cells[b + i]) return view.cells[a + i] < view.cells[b + i];
    }
    const { words, content, decode } = this.#record;
    return view === decode && words[content + one] < words[content + other];
  }

  #movePages(view: View, held: number): void {
    const { cells, shape } = view;
    const names = this.#names;
    const base = pageAt(view, 0);
    const length = shape.pages * shape.pageWidth;
    for (let i = 0; i < length; i++) this.#kept[i] = cells[base + i];
    for (let page = 0; page < shape.pages; page++) {
      const to = pageAt(view, names[page]);
      for (let i = 0; i < shape.pageWidth; i++) cells[to + i] = this.#kept[page * shape.pageWidth + i];
      const next = cells[to + PG.next];
      if (next > 0) cells[to + PG.next] = names[next - 1] + 1;
    }
    const head = cells[view.at + FREE_HEAD];
    if (head > 0) cells[view.at + FREE_HEAD] = names[head - 1] + 1;
    for (let slot = 0; slot < shape.slots; slot++) {
      const list = listAt(view, slot, SOURCE);
      const count = cells[slotAt(view, slot) + held];
      for (let place = 0; place < count; place++) cells[list + place] = names[cells[list + place]];
    }
  }

  /** Whatever names a page of decode from outside of it: contents, leases that prefill took, writes, and leases on the wire. */
  #moveContent(): void {
    const { cells, words, content, prefill, decode } = this.#record;
    const names = this.#names;
    for (let page = 0; page < decode.shape.pages; page++) this.#words[page] = words[content + page];
    for (let page = 0; page < decode.shape.pages; page++) words[content + names[page]] = this.#words[page];
    for (let slot = 0; slot < prefill.shape.slots; slot++) {
      if (cells[slotAt(prefill, slot) + PS.phase] === PrefillPhase.idle) continue;
      if (cells[slotAt(prefill, slot) + PS.peer] === 0) continue;
      const list = listAt(prefill, slot, TARGET);
      for (let place = 0; place < cells[slotAt(prefill, slot) + PS.promptPages]; place++) {
        cells[list + place] = names[cells[list + place]];
      }
    }
    const { writes, messages, env } = this.#record;
    for (let w = 0; w < cells[env + ENV.writes]; w++) words[writes + w] = mapPage(words[writes + w], names);
    for (let at = messages; at < this.#messagesEnd(); at += 2) {
      if ((words[at] & 31) === EventKind.lease) words[at + 1] = mapLease(words[at + 1], (words[at] >>> 24) & 3, names);
    }
  }

  #sortWrites(): void {
    const { cells, words, writes, env } = this.#record;
    const count = cells[env + ENV.writes];
    for (let i = 1; i < count; i++) {
      const word = words[writes + i];
      let at = i;
      for (; at > 0 && words[writes + at - 1] > word; at--) words[writes + at] = words[writes + at - 1];
      words[writes + at] = word;
    }
  }

  #sortMessages(): void {
    const { words, messages } = this.#record;
    for (let i = messages + 2; i < this.#messagesEnd(); i += 2) {
      const first = words[i];
      const second = words[i + 1];
      let at = i;
      for (; at > messages; at -= 2) {
        if (words[at - 2] < first || (words[at - 2] === first && words[at - 1] <= second)) break;
        words[at] = words[at - 2];
        words[at + 1] = words[at - 1];
      }
      words[at] = first;
      words[at + 1] = second;
    }
  }
}

/** The pairs of a lease lie in the upper 16 bits: page 3 bits, epoch 5. */
function mapLease(second: number, pairs: number, names: Int8Array): number {
  let mapped = second;
  for (let i = 0; i < pairs; i++) {
    const shift = 16 + 8 * i;
    mapped = (mapped & ~(7 << shift)) | (names[(second >>> shift) & 7] << shift);
  }
  return mapped;
}

/** Every renaming under which the requests are the same requests; the first changes nothing. */
export function renamingsOf(requests: readonly ScopeRequest[]): Renaming[] {
  return permutations(requests.length).flatMap((request) => {
    const tenant = tenantsUnder(requests, request);
    return tenant === null ? [] : [{ request, tenant }];
  });
}

function tenantsUnder(requests: readonly ScopeRequest[], request: readonly number[]): readonly number[] | null {
  const tenant = [0, 1, 2, 3];
  const isNamed = new Set<number>();
  for (const [from, to] of request.entries()) {
    const [one, other] = [requests[from], requests[to]];
    if (one.pages !== other.pages || one.hash !== other.hash) return null;
    if (isNamed.has(one.tenant) && tenant[one.tenant] !== other.tenant) return null;
    isNamed.add(one.tenant);
    tenant[one.tenant] = other.tenant;
  }
  return new Set(tenant).size === tenant.length ? tenant : null;
}

/** All orders of 0 … count - 1, the rising one first. */
function permutations(count: number): number[][] {
  if (count === 0) return [[]];
  return permutations(count - 1)
    .flatMap((order) =>
      Array.from({ length: count }, (_, at) => [...order.slice(0, at), count - 1, ...order.slice(at)]),
    )
    .sort((a, b) => Number(a.join('') > b.join('')) * 2 - 1);
}
