/**
 * Steps through a counterexample, or any other way through the world: the model that the checker explores runs in the page. The
 * address holds world, place and path, so that a link shows the same again.
 */
import { diagramOf } from '../../diagram.js';
import { formatLink, type PageData, parseLink, type StateView, Walk } from '../walk.js';
import { byId, fill, make } from './dom.js';
import { main_choices, main_pools, main_properties, main_slots, main_steps } from './panels.js';

const data = JSON.parse(byId('data').textContent ?? '') as PageData;
const walks = data.worlds.map((world) => new Walk(world));
const select = byId('world') as HTMLSelectElement;
let current = 0;
/** What the last deed came to, beside the state; empty: nothing to say. */
let note = '';

const walk = (): Walk => walks[current]!;

function isAtEnd({ world, path, at }: Walk): boolean {
  return at > 0 && at === world.path.length && world.path.every((action, index) => path[index] === action);
}

function showHead(view: StateView): void {
  const { world, path, at } = walk();
  byId('found').textContent = world.found;
  byId('place').textContent = `Step ${at} of ${path.length}`;
  byId('last').textContent =
    at === 0 ? 'The beginning: nobody has asked for anything.' : view.story.steps[at - 1]!.words;
  byId('note').textContent = note;
  // A state from which nothing can settle looks like any other: what the checker said of it is said here.
  const broken = view.broken ?? (isAtEnd(walk()) ? world.end : null);
  byId('broken').hidden = broken === null;
  byId('broken').textContent = broken === null ? '' : `${broken.invariant} is broken: ${broken.words}`;
  for (const [id, isOff] of Object.entries({
    first: at === 0,
    back: at === 0,
    forward: at === path.length,
    end: at === path.length,
  })) {
    (byId(id) as HTMLButtonElement).disabled = isOff;
  }
  (byId('counterexample') as HTMLButtonElement).disabled = world.path.length === 0;
}

function show(): void {
  const view = walk().look();
  select.value = String(current);
  showHead(view);
  main_steps(view, (at) => act(() => walk().go(at)));
  main_pools(view);
  main_slots(view);
  main_choices(view, choose);
  main_properties(view);
  byId('diagram').textContent = view.story.steps.length === 0 ? 'No step yet.' : diagramOf(view.story);
  const { at, path } = walk();
  const link = formatLink({ world: current, at, path });
  if (location.hash !== link) location.replace(link);
}

/** Does something and shows where that leads; the focus stays where it was among the actions. */
function act(deed: () => void): void {
  const index = choiceButtons().indexOf(document.activeElement as HTMLElement);
  note = '';
  deed();
  show();
  const after = choiceButtons();
  if (index >= 0) after[Math.min(index, after.length - 1)]?.focus();
}

const choose = (action: number): void => act(() => void walk().choose(action));

function choiceButtons(): HTMLElement[] {
  return Array.from(document.querySelectorAll<HTMLElement>('button.choice'));
}

/** A world beside another of the same title: the same steps, as far as they go there. */
function enterWorld(index: number): void {
  const from = walk();
  const to = walks[index];
  if (to === undefined) return;
  current = index;
  if (from.world.title !== to.world.title || from.path.length === 0) return void to.follow(to.world.path, 0);
  const wanted = from.path.length;
  const taken = from.carryTo(to);
  if (taken === wanted) return;
  note = `Step ${taken + 1} does not go the same way here. The ${taken} steps before it do.`;
  to.go(taken);
}

function settle(): void {
  const { path, states, whole } = walk().settle();
  if (path !== null) {
    const at = walk().at;
    walk().follow([...walk().path.slice(0, at), ...path], at);
    note =
      path.length === 0
        ? 'It has settled.'
        : `It can settle in ${path.length} more steps: they stand ahead, step forward to see them. ${states} states were looked at.`;
  } else if (whole)
    note = `Nothing can settle from here any more: ${states} states can be reached, and none is settled.`;
  else note = `None of the ${states} nearest states is settled; there are more.`;
}

/** What the address says, as far as it is possible; a wrong one shows the first world's counterexample from its beginning. */
function fromAddress(): void {
  const link = parseLink(location.hash);
  const target = link === null ? undefined : walks[link.world];
  if (link === null || target === undefined) {
    note = location.hash.length > 1 ? 'The address names no way through this page; this is the beginning.' : '';
    walk().follow(walk().world.path, 0);
    return;
  }
  current = link.world;
  note = '';
  const taken = target.follow(link.path, link.at);
  if (taken < link.path.length)
    note = `Step ${taken + 1} of the address is not possible here; the steps before it are shown.`;
}

const KEYS: Readonly<Record<string, () => void>> = {
  ArrowLeft: () => act(() => walk().go(walk().at - 1)),
  ArrowRight: () => act(() => walk().go(walk().at + 1)),
  Home: () => act(() => walk().go(0)),
  End: () => act(() => walk().go(walk().path.length)),
  ArrowUp: () => focusChoice(-1),
  ArrowDown: () => focusChoice(1),
};

function focusChoice(by: number): void {
  const all = choiceButtons();
  const index = all.indexOf(document.activeElement as HTMLElement);
  all[index < 0 ? 0 : (index + by + all.length) % all.length]?.focus();
}

document.addEventListener('keydown', (event) => {
  const key = KEYS[event.key];
  if (key === undefined || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.target instanceof HTMLSelectElement) return;
  event.preventDefault();
  key();
});
window.addEventListener('hashchange', () => {
  const { at, path } = walk();
  if (location.hash === formatLink({ world: current, at, path })) return;
  fromAddress();
  show();
});
select.addEventListener('change', () => act(() => enterWorld(Number(select.value))));
const CLICKS: Readonly<Record<string, () => void>> = {
  first: () => walk().go(0),
  back: () => walk().go(walk().at - 1),
  forward: () => walk().go(walk().at + 1),
  end: () => walk().go(walk().path.length),
  counterexample: () => void walk().follow(walk().world.path, 0),
  clear: () => void walk().follow([]),
  settle,
};
for (const [id, deed] of Object.entries(CLICKS)) byId(id).addEventListener('click', () => act(deed));

document.title = `Cofferdam: ${data.title}`;
byId('title').textContent = data.title;
byId('words').textContent = data.words;
fill(
  select,
  data.worlds.map(({ title, rules }, index) => {
    const made = make('option', '', `${title}: ${rules}`) as HTMLOptionElement;
    made.value = String(index);
    return made;
  }),
);
fromAddress();
show();
