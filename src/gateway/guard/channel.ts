import type { MarkerHit } from '../../markers/marker-index.js';
import type { TextScanner } from '../../markers/marker-set.js';
import { EscapeView, QUIET_CHARACTERS } from './escapes.js';
import type { Requester } from './requester.js';

/** What was found: `at` counts UTF-16 units from the beginning of its channel, escapes before it taken as they came. */
export interface Foreign {
  readonly hit: MarkerHit;
  readonly channel: string;
  readonly at: number;
}

/**
 * How much of the end of a channel is held back. Null: what may, with what comes next, become part of a marker, and no more. A number:
 * at least so many UTF-16 units; but 0 holds nothing, so that up to eleven characters of a marker leave before it is recognised.
 */
export type HoldBack = number | null;

/** Live markers, however many indexes they are in. */
export interface MarkerSource {
  scanner(): TextScanner;
}

/**
 * One text of an answer on its way out: its content, its reasoning, the arguments of a call. Twelve characters in a row of a live marker
 * of another owner, which are not in the request, never leave, however they are cut into pieces, written plainly or with JSON's escapes.
 */
export class ChannelGuard {
  readonly #markers: MarkerSource;
  readonly #requester: Requester;
  readonly #name: string;
  readonly #holdBack: HoldBack;
  readonly #scanner: TextScanner;
  /** The text without its escapes, for as long as the two differ. */
  #unescaped: { readonly view: EscapeView; readonly scanner: TextScanner; readonly at: number } | null = null;
  #held = '';
  #foreign: Foreign | null = null;

  constructor(markers: MarkerSource, requester: Requester, name: string, holdBack: HoldBack) {
    this.#markers = markers;
    this.#requester = requester;
    this.#name = name;
    this.#holdBack = holdBack;
    this.#scanner = markers.scanner();
  }

  /** What proves that the answer is not the request's own; nothing leaves from then on. */
  get foreign(): Foreign | null {
    return this.#foreign;
  }

  /** UTF-16 units that have left, or may leave. */
  get released(): number {
    return this.#foreign === null ? this.#scanner.length - this.#held.length : 0;
  }

  /** Takes a piece and gives what may leave. */
  push(piece: string): string {
    if (this.#foreign !== null) return '';
    const open = this.#scan(piece);
    if (this.#foreign !== null) return '';
    const text = this.#held + piece;
    const keep = this.#keep(text, open);
    this.#held = text.slice(text.length - keep);
    return text.slice(0, text.length - keep);
  }

  /** What was held back, once no more comes or another channel follows: it is no whole stretch. */
  flush(): string {
    const rest = this.#foreign === null ? this.#held : '';
    this.#held = '';
    return rest;
  }

  /** How much of the end may become part of a hit. */
  #scan(piece: string): number {
    if (this.#unescaped === null && piece.includes('\\')) this.#openView();
    this.#judge(this.#scanner.scan(piece), 0);
    const open = this.#scanner.holdBack;
    if (this.#unescaped === null) return open;
    const { view, scanner, at } = this.#unescaped;
    this.#judge(scanner.scan(view.push(piece)), at);
    const openView = view.rawLength(scanner.holdBack);
    if (view.quiet >= QUIET_CHARACTERS) this.#unescaped = null;
    return Math.max(open, openView);
  }

  #judge(hits: readonly MarkerHit[], at: number): void {
    if (hits.length === 0 || this.#foreign !== null) return;
    const hit = hits.find((each) => this.#requester.isForeign(each));
    if (hit !== undefined) this.#foreign = { hit, channel: this.#name, at: at + hit.textOffset };
  }

  /** From the first escape on; what came before it is the same in both views, and was searched. */
  #openView(): void {
    const { tail, length } = this.#scanner;
    const view = new EscapeView();
    const scanner = this.#markers.scanner();
    scanner.scan(view.push(tail));
    this.#unescaped = { view, scanner, at: length - tail.length };
  }

  #keep(text: string, open: number): number {
    if (this.#holdBack === 0) return 0;
    const keep = Math.min(text.length, this.#holdBack === null ? open : Math.max(open, this.#holdBack));
    // Half a character must not leave alone.
    const cut = text.length - keep;
    return keep > 0 && cut > 0 && isHighSurrogate(text.charCodeAt(cut - 1)) ? keep + 1 : keep;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}
