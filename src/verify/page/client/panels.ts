/** A state of the world on the page. Colour never says anything alone: a request has a letter and a pattern, a state its word. */
import type { PageView, SlotView } from '../look.js';
import type { Choice, Flight, StateView } from '../walk.js';
import { button, byId, fill, make, wrap } from './dom.js';

/** What is done when a person takes an action. */
export type OnChoose = (action: number) => void;

const CONTENT_WORDS: Readonly<Record<NonNullable<PageView['content']>['name'], string>> = {
  none: 'holds nothing',
  own: 'holds its own',
  stale: 'stale: of',
  torn: 'torn: of',
  sealed: 'sealed: of',
  spoilt: 'spoilt: of',
};

const colourOf = (letter: string): string => (/^[A-D]$/.test(letter) ? `of-${letter}` : 'of-none');

function pageCell({ page, state, owner, epoch, content, readers }: PageView): HTMLElement {
  const letter = state === 'draining' ? owner.toLowerCase() : state === 'free' ? '·' : state === 'sealed' ? '#' : owner;
  const cell = make('li', `page ${state} ${colourOf(owner)}`);
  cell.append(make('span', 'band'), make('span', 'number', `page ${page}, use ${epoch}`));
  cell.append(make('span', 'letter', letter));
  cell.append(make('span', 'state', state === 'sealed' ? `sealed for ${owner}` : state));
  if (content !== null) {
    const isOf = content.name !== 'none' && content.name !== 'own';
    const words = `${CONTENT_WORDS[content.name]}${isOf ? ` ${content.of}` : ''}`;
    const held = make('span', `content ${content.name}`);
    held.append(make('span', `swatch ${colourOf(content.of)}`), make('span', '', words));
    cell.append(held);
  }
  for (const { request, isOwn } of readers) {
    cell.append(make('span', isOwn ? 'reader' : 'reader foreign', `read by ${request}${isOwn ? '' : ': not its own'}`));
  }
  return cell;
}

export function main_pools({ prefill, decode }: StateView): void {
  fill(
    byId('prefill'),
    prefill.map((page) => pageCell(page)),
  );
  fill(
    byId('decode'),
    decode.map((page) => pageCell(page)),
  );
}

function slotRow({ slot, request, tenant, attempt, isOpen, ...told }: SlotView): HTMLElement {
  const row = make('tr', isOpen ? '' : 'idle');
  const name = make('th', '', request === '' ? `slot ${slot}` : request);
  name.setAttribute('scope', 'row');
  if (request !== '') name.prepend(make('span', `swatch ${colourOf(request)}`));
  row.append(name);
  const who = request === '' ? '–' : `${tenant}, attempt ${attempt}`;
  for (const text of [who, told.gateway, told.prefill, told.decode, told.result === '' ? '–' : told.result]) {
    row.append(make('td', '', text));
  }
  return row;
}

export function main_slots({ slots }: StateView): void {
  fill(
    byId('slots'),
    slots.map((slot) => slotRow(slot)),
  );
}

const VERBS: readonly (readonly [RegExp, string])[] = [
  [/keep/, 'deliver, keep a copy'],
  [/^deliver/, 'deliver'],
  [/^lose/, 'lose'],
  [/torn/, 'land torn'],
  [/lands/, 'land'],
];
const verbOf = (kind: string): string => VERBS.find(([pattern]) => pattern.test(kind))?.[1] ?? kind;

function choiceButton(choice: Choice, text: string, onChoose: OnChoose): HTMLButtonElement {
  const made = button(`choice ${choice.isProgress ? 'progress' : 'world'}`, text, () => onChoose(choice.action));
  made.dataset.action = String(choice.action);
  if (text !== choice.words) made.title = choice.words;
  return made;
}

function flightRow(flight: Flight, onChoose: OnChoose): HTMLElement {
  const arrow = make('span', 'arrow', `${flight.from} ${flight.isWrite ? '⇒' : '→'} ${flight.to}`);
  const words = make('span', 'words', flight.words);
  const kind = make('span', 'kind', flight.isWrite ? 'page write' : 'message');
  const choices = flight.choices.map((choice) => choiceButton(choice, verbOf(choice.kind), onChoose));
  for (const [index, made] of choices.entries()) {
    made.setAttribute('aria-label', `${verbOf(flight.choices[index]!.kind)}: ${flight.label}`);
  }
  return wrap('li', 'flight', kind, arrow, words, wrap('span', 'buttons', ...choices));
}

export function main_choices({ flights, choices }: StateView, onChoose: OnChoose): void {
  fill(
    byId('flights'),
    flights.map((flight) => flightRow(flight, onChoose)),
    'Nothing is on the wire.',
  );
  const item = (choice: Choice): HTMLElement => wrap('li', '', choiceButton(choice, choice.words, onChoose));
  const own = choices.filter(({ isProgress }) => isProgress);
  const world = choices.filter(({ isProgress }) => !isProgress);
  fill(
    byId('choices-own'),
    own.map((choice) => item(choice)),
    'Nothing beside the wire.',
  );
  fill(
    byId('choices-world'),
    world.map((choice) => item(choice)),
    'Nothing more.',
  );
}

export function main_properties({ properties, sometimes, settled, troubles }: StateView): void {
  const status = (isRight: boolean, word: string, name: string, words: string): HTMLElement =>
    wrap('li', isRight ? 'right' : 'wrong', make('b', '', word), make('span', 'name', name), make('span', '', words));
  const rows = properties.map(({ invariant, actor, words, counts }) => {
    const name = actor === null ? invariant : `${invariant} (${actor})`;
    const note = counts || words === null ? '' : '; not counted as harm here';
    return status(words === null, words === null ? '✓ holds' : '✗ broken', name, `${words ?? ''}${note}`);
  });
  fill(byId('properties'), rows);
  const seen = sometimes.map(({ name, holds }) =>
    wrap('li', holds ? 'seen' : 'unseen', make('b', '', holds ? '● here' : '○ not here'), make('span', 'name', name)),
  );
  fill(byId('sometimes'), seen);
  byId('settled').textContent = settled
    ? 'Settled: nothing is open, every page can be had.'
    : 'Not settled: something is open.';
  const left = troubles.map(({ words, left, of }) =>
    make('li', left === 0 ? 'spent' : '', `${words}: ${left} of ${of} left`),
  );
  fill(byId('troubles'), left, 'None: nothing may go wrong in this world.');
}

export function main_steps({ at, story }: StateView, onGo: (at: number) => void): void {
  const step = (index: number, words: string): HTMLElement => {
    const made = button('step', '', () => onGo(index));
    made.append(make('span', 'number', String(index)), make('span', '', words));
    if (index === at) made.setAttribute('aria-current', 'step');
    return wrap('li', index > at ? 'ahead' : '', made);
  };
  fill(byId('steps'), [step(0, 'the beginning'), ...story.steps.map(({ words }, index) => step(index + 1, words))]);
  keepInView(byId('steps'), byId('steps').children[at] as HTMLElement);
  fill(
    byId('pages-words'),
    story.pages.map((words) => make('li', '', words)),
    'No page has a story yet.',
  );
}

/** Scrolls the list, and never the page: what the step changed is to stay where the eye is. */
function keepInView(list: HTMLElement, item: HTMLElement): void {
  const isAbove = item.offsetTop < list.scrollTop;
  const isBelow = item.offsetTop + item.offsetHeight > list.scrollTop + list.clientHeight;
  if (isAbove || isBelow) list.scrollTop = item.offsetTop - list.clientHeight / 2;
}
