/**
 * What is under way between the gateway and the two nodes. Messages of the protocol may be lost, repeated and overtaken. What decode
 * tells the gateway comes in order, since its tokens do: only repeats of it are late, and only what is asked for again is lost.
 */
import type { Prng } from '../base/prng.js';
import type { ToDecode, ToGateway, ToPrefill } from '../engine/traffic.js';
import { E, EventKind } from '../handoff/messages.js';
import type { Plan } from './plan.js';
import { SIM, type SimTrace } from './sim-trace.js';

export type Message = ToGateway | ToPrefill | ToDecode;
/** From whom to whom; the last three are the supervisor's word that a node lives again, which comes whole and in order. */
export const CHANNELS = [
  'prefill-gateway',
  'decode-gateway',
  'gateway-prefill',
  'decode-prefill',
  'gateway-decode',
  'prefill-decode',
  'supervisor-gateway',
  'supervisor-prefill',
  'supervisor-decode',
] as const;
export type Channel = (typeof CHANNELS)[number];
export const CHANNEL: Readonly<Record<Channel, number>> = Object.fromEntries(
  CHANNELS.map((name, index) => [name, index]),
) as Record<Channel, number>;

const DECODE_TO_GATEWAY = CHANNEL['decode-gateway'];
const FIRST_IN_ORDER = CHANNEL['supervisor-gateway'];

/** The word of the supervisor to the gateway; to the nodes it is a message of their own. */
export interface Down {
  readonly kind: 'down';
  readonly node: 'prefill' | 'decode';
  readonly incarnation: number;
}
type Letter = Message | Down;

export class Post {
  /** While everything comes to rest nothing is lost or repeated any more. */
  isCalm = false;
  lost = 0;
  repeated = 0;
  overtaken = 0;
  waiting = 0;
  readonly #letters: Letter[][] = CHANNELS.map(() => []);
  readonly #plan: Plan;
  readonly #chance: Prng;
  readonly #trace: SimTrace;

  constructor(plan: Plan, chance: Prng, trace: SimTrace) {
    this.#plan = plan;
    this.#chance = chance;
    this.#trace = trace;
  }

  send(channel: number, letter: Letter): void {
    if (letter.kind === 'protocol' && !this.isCalm && channel < FIRST_IN_ORDER) {
      const draw = this.#chance.u32() >>> 16;
      if (draw < this.#plan.loss && isAskedForAgain(channel, letter.event)) {
        this.lost++;
        return this.#note(SIM.lose, channel, letter);
      }
      if (65_535 - draw < this.#plan.repeats) {
        this.repeated++;
        this.#note(SIM.repeat, channel, letter);
        this.#push(channel, letter);
      }
    }
    this.#push(channel, letter);
  }

  #push(channel: number, letter: Letter): void {
    this.#letters[channel]?.push(letter);
    this.waiting++;
  }

  /** Takes the next letter of a channel that has one, by chance; null where none waits. Answers the channel in `channel`. */
  take(): { readonly channel: number; readonly letter: Letter } | null {
    if (this.waiting === 0) return null;
    let channel = this.#chance.below(CHANNELS.length);
    while (this.#letters[channel]?.length === 0) channel = (channel + 1) % CHANNELS.length;
    const letters = this.#letters[channel] ?? [];
    const window = this.#isInOrder(channel) ? 1 : Math.min(this.#plan.reorderWindow, letters.length);
    const at = window === 1 ? 0 : this.#chance.below(window);
    const letter = (at === 0 ? letters.shift() : letters.splice(at, 1)[0]) as Letter;
    if (at > 0) this.overtaken++;
    this.waiting--;
    this.#note(SIM.deliver, channel, letter);
    return { channel, letter };
  }

  #isInOrder(channel: number): boolean {
    return channel === DECODE_TO_GATEWAY || channel >= FIRST_IN_ORDER;
  }

  /** A node died: what was under way to it is gone, and of what it had sent the gateway in order, the end is. */
  cut(to: 'prefill' | 'decode'): void {
    const gone: readonly Channel[] =
      to === 'prefill'
        ? ['gateway-prefill', 'decode-prefill', 'supervisor-prefill']
        : ['gateway-decode', 'prefill-decode', 'supervisor-decode'];
    for (const name of gone) this.#keep(CHANNEL[name], 0);
    if (to === 'decode') {
      const sent = this.#letters[DECODE_TO_GATEWAY]?.length ?? 0;
      this.#keep(DECODE_TO_GATEWAY, this.#chance.below(sent + 1));
    }
  }

  #keep(channel: number, count: number): void {
    const letters = this.#letters[channel] ?? [];
    this.waiting -= letters.length - count;
    letters.length = count;
  }

  #note(what: number, channel: number, letter: Letter): void {
    if (letter.kind === 'protocol') {
      const { event } = letter;
      this.#trace.record(what, channel, event[E.kind], event[E.slot], event[E.attempt]);
    } else this.#trace.record(what, channel, -1);
  }
}

/** What decode says once and nobody asks for again is not lost while decode lives: `started` opens the stream of its tokens. */
function isAskedForAgain(channel: number, event: Int32Array): boolean {
  return channel !== DECODE_TO_GATEWAY || event[E.kind] !== EventKind.started;
}
