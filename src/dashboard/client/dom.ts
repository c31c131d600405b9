/**
 * The page's only way to its own document. Every string goes in as text, never as markup; what did not change is not touched, so
 * that focus, selection and an open entry survive the next reading.
 */

/** A panel's element; the page has all that are named. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element #${id}`);
  return found;
}

export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

export function setClass(node: Element, className: string): void {
  if (node.className !== className) node.className = className;
}

export function make(tag: string, className: string = '', text: string = ''): HTMLElement {
  const made = document.createElement(tag);
  if (className !== '') made.className = className;
  if (text !== '') made.textContent = text;
  return made;
}

/** One share of a bar; 1 is the whole of it. */
export interface Share {
  readonly kind: 'leased' | 'draining' | 'cached' | 'holds' | 'lacks';
  readonly share: number;
}

/** A text, or a text with its bar before it. The bar says nothing that the texts of its row do not. */
export type Cell = string | { readonly text: string; readonly className?: string; readonly bar?: readonly Share[] };

/** Children of `parent` by key, made, filled, put in order and removed as `items` want it. */
export function eachKeyed<T>(
  parent: HTMLElement,
  items: readonly T[],
  keyOf: (item: T) => string,
  create: (item: T) => HTMLElement,
  fill: (node: HTMLElement, item: T) => void,
): void {
  const old = new Map<string, HTMLElement>();
  for (const child of Array.from(parent.children) as HTMLElement[]) old.set(child.dataset.key ?? '', child);
  items.forEach((item, index) => {
    const key = keyOf(item);
    const node = old.get(key) ?? create(item);
    old.delete(key);
    node.dataset.key = key;
    fill(node, item);
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] ?? null);
  });
  for (const node of old.values()) node.remove();
}

/** Rows of a table; the first cell is the row's header. With no items, one row that says so in words. */
export function fillRows<T>(
  id: string,
  items: readonly T[],
  keyOf: (item: T) => string,
  cellsOf: (item: T) => readonly Cell[],
  emptyText: string = '',
): void {
  const body = byId(id);
  if (items.length === 0 && emptyText !== '') return fillEmpty(body, emptyText);
  const make1 = (item: T): HTMLElement => newRow(cellsOf(item).length);
  eachKeyed(
    body,
    items,
    (item) => `row ${keyOf(item)}`,
    make1,
    (row, item) => fillRow(row, cellsOf(item)),
  );
}

function fillEmpty(body: HTMLElement, text: string): void {
  const columns = body.closest('table')?.querySelectorAll('thead th').length ?? 1;
  const create = (): HTMLElement => {
    const row = make('tr');
    const cell = document.createElement('td');
    cell.colSpan = columns;
    cell.className = 'empty';
    row.append(cell);
    return row;
  };
  eachKeyed(
    body,
    [text],
    () => 'empty',
    create,
    (row) => setText(row.children[0]!, text),
  );
}

function newRow(cells: number): HTMLElement {
  const row = make('tr');
  for (let index = 0; index < cells; index++) {
    const cell = make(index === 0 ? 'th' : 'td');
    if (index === 0) cell.setAttribute('scope', 'row');
    row.append(cell);
  }
  return row;
}

function fillRow(row: HTMLElement, cells: readonly Cell[]): void {
  cells.forEach((cell, index) => {
    const node = row.children[index] as HTMLElement;
    if (typeof cell === 'string') {
      setClass(node, '');
      setText(node, cell);
      return;
    }
    setClass(node, cell.className ?? '');
    if (cell.bar === undefined) setText(node, cell.text);
    else fillBar(node, cell.bar, cell.text);
  });
}

function fillBar(node: HTMLElement, bar: readonly Share[], text: string): void {
  if (node.children.length !== 2) {
    const track = make('span', 'bar');
    track.setAttribute('aria-hidden', 'true');
    node.replaceChildren(track, make('span', 'bar-text'));
  }
  const parts = bar.filter(({ share }) => share > 0);
  const fill = (part: HTMLElement, { kind, share }: Share): void => {
    setClass(part, kind);
    part.style.width = `${(100 * Math.min(1, share)).toFixed(2)}%`;
  };
  eachKeyed(
    node.children[0] as HTMLElement,
    parts,
    ({ kind }) => kind,
    () => make('span'),
    fill,
  );
  setText(node.children[1]!, text);
}
