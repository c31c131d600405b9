/**
 * Goal: the explorer's page holds everything it needs and nothing that runs beside its script; what it runs is the model itself.
 * Method: its text; its script in a bare context with a document of a few lines; the walk behind it, compared with the checker.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext, Script } from 'node:vm';
import type { FaultName } from '../../handoff/faults.js';
import { faultJobs, type JobResult, modelOf, runJob } from '../campaign.js';
import { ACTION_INDEX_MAX, ACTIONS_MAX, ALL_PARTS } from '../model.js';
import { A, ACTION_KEYS } from '../models/handoff-actions.js';
import { HandoffModel } from '../models/handoff.js';
import { scopeOf, scopeOfFault } from '../scopes.js';
import { storyOf } from '../story.js';
import { bundle } from './bundle.js';
import { pageDataOf } from './data.js';
import { buildPage, jsonInMarkup, PAGE_BYTES_MAX, pageScript } from './markup.js';
import { wayToSettle } from './settle.js';
import { formatLink, LINK_STEPS_MAX, type PageData, type PageWorld, parseLink, Walk } from './walk.js';

const FAULT = 'silent-abort';
const scope = scopeOf(scopeOfFault(FAULT));
const { off, on } = faultJobs(FAULT, scope);
const results: JobResult[] = off.map((job) => ({ job, found: runJob(job) }));
const data = pageDataOf(scope, FAULT, [
  { words: 'guards off', jobs: off, results },
  { words: 'guards on', jobs: on, results: null },
]);
const [broken, guarded] = data.worlds as [PageWorld, PageWorld];
const html = buildPage(data);

const only = (text: string, open: string, close: string): string => {
  const parts = text.split(open);
  assert.equal(parts.length, 2, `one ${open}`);
  return parts[1].slice(0, parts[1].indexOf(close));
};

describe('the page as a document', () => {
  const style = only(html, '<style>', '</style>');
  const script = only(html, '<script>', '</script>');
  const json = only(html, '<script type="application/json" id="data">', '</script>');
  const rest = html.replace(script, '').replace(json, '').replace(style, '');

  test('its policy lets run and apply exactly the script and the style in it, and load nothing', () => {
    const policy = only(html, 'http-equiv="content-security-policy" content="', '">');
    const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    const rules = new Map(policy.split('; ').map((rule) => [rule.split(' ')[0], rule.split(' ').slice(1).join(' ')]));
    assert.equal(rules.get('default-src'), "'none'");
    assert.equal(rules.get('script-src'), hash(script));
    assert.equal(rules.get('style-src'), hash(style));
    assert.doesNotMatch(policy, /unsafe|\*|https?:|connect-src|img-src/);
  });

  test('names nothing to load, has no handler in an attribute, and is small enough to be sent', () => {
    assert.doesNotMatch(rest, /<(?:link|img|iframe|object|embed|base|form|script src)\b|\s(?:on\w+|style|src|href)=/i);
    assert.doesNotMatch(style, /@import|url\(/i);
    assert.doesNotMatch(
      script,
      /https?:\/\/|\bfetch\(|XMLHttpRequest|WebSocket|import\(|localStorage|document\.cookie/,
    );
    assert.ok(Buffer.byteLength(html) < PAGE_BYTES_MAX, `${Buffer.byteLength(html)} bytes`);
  });

  test('its script is the same whatever the data are', () => {
    assert.equal(script, pageScript());
    assert.ok(!script.includes(data.worlds[0].found));
  });

  test('hostile names stay inside the data and come back as they were', () => {
    const name = '</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> \u2028 & "\'';
    const hostile: PageData = { ...data, title: name, words: name, worlds: [{ ...broken, title: name, found: name }] };
    const page = buildPage(hostile);
    assert.equal(page.split('<script').length, 3);
    const text = only(page, '<script type="application/json" id="data">', '</script>');
    assert.doesNotMatch(text, /[<>&\u2028]/);
    assert.deepEqual(JSON.parse(text), hostile);
    assert.equal(text, jsonInMarkup(hostile));
  });

  test('every element that its script names is there once', () => {
    const ids = [...html.matchAll(/\sid="([^"]+)"/g)].map((match) => match[1]);
    assert.equal(new Set(ids).size, ids.length);
    const named = [...script.matchAll(/byId\('([^']+)'\)/g)].map((match) => match[1]);
    const buttons = [...rest.matchAll(/<button id="([^"]+)"/g)].map((match) => match[1]);
    assert.ok(named.length > 15 && buttons.length === 7);
    for (const id of named) assert.ok(ids.includes(id), `#${id}`);
    for (const id of buttons) assert.match(script, new RegExp(`^    ${id}[:,]`, 'm'), `the button #${id} does nothing`);
  });

  test('its own code puts strings into the page as text only', () => {
    const folder = fileURLToPath(new URL('../../../../src/verify/page/client', import.meta.url));
    for (const file of readdirSync(folder)) {
      const ways =
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|\beval\b|new Function|setAttribute\('(?:on|href|src|style)/;
      assert.doesNotMatch(readFileSync(`${folder}/${file}`, 'utf8'), ways, file);
    }
  });
});

interface Worlds {
  readonly broken: PageWorld;
  readonly guarded: PageWorld;
}
const explored = new Map<FaultName, Worlds>();

/** The first counterexample of a fault with its guards off, and the same world with them on. */
function worldsOf(fault: FaultName): Worlds {
  const known = explored.get(fault);
  if (known !== undefined) return known;
  const scope = scopeOf(scopeOfFault(fault));
  const jobs = faultJobs(fault, scope);
  const results: JobResult[] = jobs.off.map((job) => ({ job, found: runJob(job) }));
  const { worlds } = pageDataOf(scope, fault, [
    { words: 'guards off', jobs: jobs.off, results },
    { words: 'guards on', jobs: jobs.on, results: null },
  ]);
  const found = { broken: worlds[0], guarded: worlds[1] };
  explored.set(fault, found);
  return found;
}

/** The record of the model behind each step of a path. */
function recordsOf(model: HandoffModel, path: readonly number[]): string[] {
  model.init();
  return path.map((action) => {
    model.next(action);
    return [...model.cells].join();
  });
}

interface Bare {
  Walk?: typeof Walk;
}

describe('the code of the page', () => {
  const folder = new URL('./', import.meta.url);
  const entry = new URL('entry.js', folder).href;
  const read = (path: string): string =>
    path === entry
      ? "import { Walk } from './walk.js';\nglobalThis.Walk = Walk;\n"
      : readFileSync(new URL(path), 'utf8');
  // The language and nothing else: no module, no process, no document.
  const bare: Bare = createContext({});
  runInContext(bundle(entry, read), bare as object);

  test('alone, it meets every state of the counterexample as the checker does, and breaks as it did', () => {
    assert.ok(bare.Walk !== undefined);
    const walk = new bare.Walk(broken);
    assert.equal(walk.follow(broken.path), broken.path.length);
    const view = walk.look();
    assert.deepEqual(JSON.parse(JSON.stringify(view.broken)), broken.end);
    const here = modelOf(off[0]);
    assert.deepEqual(recordsOf(walk.model, broken.path), recordsOf(here, broken.path));
    assert.deepEqual(JSON.parse(JSON.stringify(view.story)), storyOf(here, broken.path, broken.end?.words ?? ''));
  });

  test('holds the three machines as they were compiled, to the letter', () => {
    const script = pageScript();
    for (const name of ['gateway', 'prefill', 'decode']) {
      const text = readFileSync(new URL(`../../handoff/${name}.js`, folder), 'utf8');
      const functions = text
        .slice(text.search(/^(?:export )?function /m))
        .replaceAll(/^export |^\/\/# source.*\n?/gm, '');
      assert.ok(functions.length > 3000 && script.includes(functions), name);
    }
    assert.ok(new Script(script));
    assert.doesNotMatch(script, /^\s*(?:import|export)\b|sourceMappingURL|\brequire\(|\bprocess\./m);
  });

  const bundleOf = (files: Readonly<Record<string, string>>): string =>
    bundle('file:///a.js', (path) => files[path.slice('file:///'.length)] ?? '');

  test('modules are called once, after those they import, and know each other by any form that is used here', () => {
    const script = bundleOf({
      'a.js':
        "import { b as own, c } from './b.js';\nimport './d.js';\nglobalThis.said = [own(), c, globalThis.times].join(' ');\n",
      'b.js':
        "import { d } from './d.js';\nexport { d as c } from './d.js';\nexport function b() {\n    return d;\n}\nexport {};\n",
      'd.js': 'export const d = 7;\nglobalThis.times = (globalThis.times ?? 0) + 1;\n//# sourceMappingURL=d.js.map\n',
    });
    const context: { said?: string } = createContext({});
    runInContext(script, context as object);
    assert.equal(context.said, '7 7 1');
  });

  for (const [what, text, words] of [
    ['a module of node', "import fs from 'node:fs';\n", /is not understood/],
    ['a package', "import { x } from 'yaml';\n", /imports yaml, which is not a file beside it/],
    ['a default export', 'export default 1;\n', /is not understood/],
    ['a binding that changes', 'export let x = 1;\n', /is not understood/],
    ['a circle', "import { x } from './a.js';\n", /in a circle/],
    ['an end of its element', "const x = '</script>';\n", /ends its own element/],
  ] as const) {
    test(`${what} is refused`, () => {
      assert.throws(() => bundleOf({ 'a.js': text }), words);
    });
  }
});

describe('a way through the world', () => {
  test('at every state the status of the properties is that of the checker, and what is possible is all that is possible', () => {
    const walk = new Walk(broken);
    walk.follow(broken.path, 0);
    const model = modelOf(off[0]);
    const possible = new Int32Array(ACTIONS_MAX);
    for (let at = 0; at <= broken.path.length; at++) {
      walk.go(at);
      const view = walk.look();
      model.init();
      for (const action of broken.path.slice(0, at)) model.next(action);
      assert.deepEqual(view.broken, model.properties.always(ALL_PARTS));
      const counted = view.properties.find(({ words, counts }) => words !== null && counts);
      assert.equal(counted?.invariant, view.broken?.invariant);
      const shown = [...view.flights.flatMap(({ choices }) => choices), ...view.choices].map(({ action }) => action);
      assert.deepEqual(
        shown.sort((a, b) => a - b),
        [...possible.subarray(0, model.actions(possible))].sort((a, b) => a - b),
      );
    }
  });

  test('a choice leaves what came after it, unless it is the same; what is not possible changes nothing', () => {
    const walk = new Walk(broken);
    walk.follow(broken.path, 0);
    assert.ok(walk.choose(broken.path[0]));
    assert.deepEqual([walk.at, walk.path.length], [1, broken.path.length]);
    const other = walk.look().choices.find(({ action }) => action !== broken.path[1]);
    assert.ok(other !== undefined && walk.choose(other.action));
    assert.deepEqual([walk.at, walk.path], [2, [broken.path[0], other.action]]);
    assert.equal(walk.choose(A.readEnd * ACTION_INDEX_MAX), false);
    assert.equal(walk.at, 2);
    walk.go(Number.POSITIVE_INFINITY);
    assert.equal(walk.at, 2);
    walk.go(-5);
    assert.equal(walk.at, 0);
  });

  test('with its guards on the same way ends where a guard stops it', () => {
    const [from, to] = [new Walk(broken), new Walk(guarded)];
    from.follow(broken.path);
    const taken = from.carryTo(to);
    assert.ok(taken > 0 && taken < broken.path.length, `${taken} of ${broken.path.length}`);
    assert.equal(to.look().broken, null);
    assert.deepEqual(to.path, broken.path.slice(0, taken));
  });

  test("pages show their holder, whose content they hold and who reads it: another tenant's is stale", () => {
    const { broken, guarded } = worldsOf('unfenced-restart');
    const walk = new Walk(broken);
    walk.follow(broken.path);
    const [page] = walk.look().decode;
    assert.deepEqual([page.state, page.content?.name], ['leased', 'stale']);
    assert.notEqual(page.content?.of, page.owner);
    assert.deepEqual(page.readers, [{ request: page.owner, isOwn: false }]);
    // The same actions by number are possible with the guards on, and are others from some step on.
    const to = new Walk(guarded);
    assert.equal(to.follow(broken.path), broken.path.length);
    assert.ok(walk.carryTo(to) < broken.path.length);
    walk.go(0);
    const content = { name: 'none', of: '' };
    assert.deepEqual(walk.look().decode[0], { page: 0, state: 'free', owner: '', epoch: 0, content, readers: [] });
  });

  test('on a way without a trouble what is read is what its reader is to read', () => {
    const walk = new Walk(guarded);
    const steps = [A.submit, A.deliver, A.deliver, A.decodeAdmit, A.deliver, A.prefillAdmit, A.compute, A.land];
    walk.follow(steps.map((kind) => kind * ACTION_INDEX_MAX));
    assert.equal(walk.at, steps.length);
    assert.deepEqual(walk.look().decode[0].content, { name: 'own', of: 'A' });
    const way = walk.settle().path ?? [];
    walk.follow([...walk.path, ...way]);
    let reads = 0;
    for (let at = 0; at <= walk.path.length; at++) {
      walk.go(at);
      for (const { isOwn } of walk.look().decode.flatMap(({ readers }) => readers)) {
        assert.ok(isOwn);
        reads++;
      }
    }
    assert.ok(reads > 0);
  });

  for (const fault of ['retry-keeps-attempt', 'room-collision'] as const) {
    test(`${fault}: what is read at the end is shown as not its own`, () => {
      const { broken } = worldsOf(fault);
      const walk = new Walk(broken);
      walk.follow(broken.path);
      const { decode } = walk.look();
      assert.ok(decode.some(({ readers }) => readers.some(({ isOwn }) => !isOwn)));
      assert.ok(decode.every(({ content }) => content?.name !== 'own' || fault === 'room-collision'));
    });
  }

  test('each status by itself is broken where the checker that counts everything says so', () => {
    const { broken } = worldsOf('unfenced-restart');
    const seen = new Set<string>();
    for (let at = 0; at <= broken.path.length; at++) {
      const walk = new Walk(broken);
      walk.follow(broken.path, at);
      const { properties } = walk.look();
      const all = new HandoffModel({ ...broken.scope, harmOnly: false });
      all.cells.set(walk.model.cells);
      const wrong = properties.filter(({ words }) => words !== null).map(({ invariant }) => invariant);
      const first = all.properties.always(ALL_PARTS);
      assert.equal(first === null, wrong.length === 0);
      if (first !== null) assert.ok(wrong.includes(first.invariant), first.invariant);
      for (const invariant of wrong) seen.add(invariant);
    }
    assert.deepEqual([...seen].sort(), ['noForeignRead', 'noReuseBeforeQuiescence']);
  });

  test('a state can settle by steps that are possible, or it is shown that nothing can', () => {
    const { broken, guarded } = worldsOf('unannounced-rejection');
    assert.equal(broken.end?.invariant, 'everythingCanSettle');
    const stuck = new Walk(broken);
    stuck.follow(broken.path);
    const { path, states, whole } = stuck.settle();
    assert.deepEqual([path, whole], [null, true]);
    assert.ok(states > 0);
    const sound = new Walk(guarded);
    sound.follow([A.submit * ACTION_INDEX_MAX + 1]);
    const way = sound.settle().path;
    assert.ok(way !== null && way.length > 0);
    assert.equal(sound.look().settled, false);
    const whole2 = [...sound.path, ...way];
    assert.equal(sound.follow(whole2), whole2.length);
    assert.equal(sound.look().settled, true);
    const cut = wayToSettle(stuck.model, 1);
    assert.deepEqual(cut, { path: null, states: 1, whole: false });
  });
});

describe('the address', () => {
  test('holds world, place and path, and gives them back', () => {
    const link = { world: 1, at: 3, path: broken.path };
    assert.deepEqual(parseLink(formatLink(link)), link);
    assert.match(formatLink(link), /^#1\/3\/submit0,deliver1,decodeAdmit0,/);
    assert.deepEqual(parseLink('#0/0/'), { world: 0, at: 0, path: [] });
    for (let action = 0; action < ACTION_KEYS.length * ACTION_INDEX_MAX; action += 7) {
      assert.deepEqual(parseLink(formatLink({ world: 0, at: 1, path: [action] }))?.path, [action]);
    }
  });

  for (const hash of [
    '',
    '#',
    '#x',
    '#0/0',
    '#0/0/nothing0',
    '#0/0/submit',
    '#0/0/submit32',
    '#0/-1/',
    '#0/0/submit0,',
    '#0/0/<b>',
    '#0/0/constructor0',
    `#0/0/${'submit0,'.repeat(LINK_STEPS_MAX)}submit0`,
  ]) {
    test(`${JSON.stringify(hash.slice(0, 20))} is none`, () => {
      assert.equal(parseLink(hash), null);
    });
  }

  test('of steps that are not possible shows those before them', () => {
    const walk = new Walk(broken);
    const link = parseLink('#0/9/submit0,readEnd0,submit1');
    assert.ok(link !== null);
    assert.equal(walk.follow(link.path, link.at), 1);
    assert.deepEqual([walk.at, walk.path.length], [1, 1]);
  });
});
