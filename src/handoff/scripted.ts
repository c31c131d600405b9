/**
 * One actor driven by named events, its effects told in short words: what the protocol's tests are written in. Everything goes through
 * the friendly `step`.
 */
import { assert } from '../base/assert.js';
import { DecodePhase } from './decode.js';
import { type FaultName, faultBits } from './faults.js';
import { GatewayPhase } from './gateway.js';
import { ALL_GUARDS, type GuardName, GUARDS, guardBits } from './guards.js';
import { firstBroken } from './invariants.js';
import { type Actor, getHeader, getPage, getSlot, listAt, newView, type PG, shapeOf, type View } from './layout.js';
import { freeCount } from './ledger.js';
import { resultName } from './messages.js';
import { PrefillPhase } from './prefill.js';
import { type NamedEffect, type NamedEvent, step } from './step.js';

export interface ScriptedOptions {
  readonly slots?: number;
  readonly pages?: number;
  readonly pagesPerSlot?: number;
  readonly prefixes?: boolean;
  readonly faults?: readonly FaultName[];
  /** Default: all of them. */
  readonly guards?: readonly GuardName[];
}

const PHASES: Readonly<Record<Actor, Readonly<Record<string, number>>>> = {
  gateway: GatewayPhase,
  prefill: PrefillPhase,
  decode: DecodePhase,
};

export class Scripted {
  state: View;
  /** Effects of the last event. */
  effects: NamedEffect[] = [];

  constructor(actor: Actor, options: ScriptedOptions = {}) {
    const { slots = 2, pages = 4, pagesPerSlot = 4, prefixes = false, faults = [], guards } = options;
    const shape = actor === 'gateway' ? { slots } : { slots, pages, pagesPerSlot, prefixes };
    this.state = newView(shapeOf(actor, shape), {
      faults: faultBits(faults),
      guards: guards === undefined ? ALL_GUARDS : guardBits(guards),
    });
  }

  /** Takes an event and says what came of it. With every guard on the record has to hold its invariants. */
  do(event: NamedEvent): string[] {
    const { state, effects } = step(this.state, event);
    this.state = state;
    this.effects = effects;
    const broken = state.rules.guards === ALL_GUARDS ? firstBroken(state) : null;
    assert(broken === null, `an invariant broke: ${broken}`);
    return effects.map(effectInWords);
  }

  phase(slot = 0): string {
    const value = getSlot(this.state, slot, 'phase');
    const found = Object.entries(PHASES[this.state.shape.actor]).find(([, number]) => number === value);
    return found?.[0] ?? `phase ${value}`;
  }

  slot(field: string, slot = 0): number {
    return getSlot(this.state, slot, field);
  }

  header(field: string): number {
    return getHeader(this.state, field);
  }

  page(page: number, field: keyof typeof PG): number {
    return getPage(this.state, page, field);
  }

  /** The slot's own list number `list`, as far as pages are held. */
  held(slot = 0, list = 0): number[] {
    return this.list(slot, list).slice(0, getSlot(this.state, slot, 'held'));
  }

  /** All of the slot's list number `list`. */
  list(slot: number, list: number): number[] {
    const from = listAt(this.state, slot, list);
    return Array.from(this.state.cells.slice(from, from + this.state.shape.pagesPerSlot));
  }

  free(): number {
    return freeCount(this.state);
  }
}

/** `decode: lease`, `gateway: decodeClosed finished`, `client: refused`, `guard: count`, `post 0+2`, `revoke 1`. */
export function effectInWords(effect: NamedEffect): string {
  switch (effect.effect) {
    case 'sendGateway':
    case 'sendPrefill':
    case 'sendDecode': {
      const hasResult = effect.kind === 'failing' || effect.kind?.endsWith('Closed');
      const target = effect.effect.slice('send'.length).toLowerCase();
      return `${target}: ${effect.kind}${hasResult ? ` ${resultName(effect.code)}` : ''}`;
    }
    case 'clientEnd':
      return `client: ${resultName(effect.code)}`;
    case 'guardHit':
      return `guard: ${GUARDS[effect.code]}`;
    case 'post':
      return `post ${effect.promptPages}+${effect.pages}`;
    case 'seal':
      return `seal page ${effect.pages} hash ${effect.code}`;
    case 'revoke':
    case 'register':
      return `${effect.effect} ${effect.from}`;
    default:
      return effect.effect;
  }
}
