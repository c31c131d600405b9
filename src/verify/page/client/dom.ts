/** The page's only way to its own document. Every string goes in as text, never as markup. */

/** An element of the page, which has all that are named. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element #${id}`);
  return found;
}

export function make(tag: string, className: string = '', text: string = ''): HTMLElement {
  const made = document.createElement(tag);
  if (className !== '') made.className = className;
  if (text !== '') made.textContent = text;
  return made;
}

/** An element around others. */
export function wrap(tag: string, className: string, ...children: readonly HTMLElement[]): HTMLElement {
  const made = make(tag, className);
  made.append(...children);
  return made;
}

export function button(className: string, text: string, onClick: () => void): HTMLButtonElement {
  const made = make('button', className, text) as HTMLButtonElement;
  made.type = 'button';
  made.addEventListener('click', onClick);
  return made;
}

/** The children of `parent` anew; with none, one line that says so. */
export function fill(parent: HTMLElement, children: readonly HTMLElement[], empty: string = ''): void {
  const isEmpty = children.length === 0 && empty !== '';
  const tag = parent.tagName === 'UL' || parent.tagName === 'OL' ? 'li' : 'p';
  parent.replaceChildren(...(isEmpty ? [make(tag, 'empty', empty)] : children));
}
