/** Goal: one page that fetches nothing, runs nothing but its own script, and turns no string into markup. Method: its text. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { buildPage, CLIENT_MODULES, clientScript } from './page.js';
import {
  FINDINGS_SHOWN_MAX,
  findingsPart,
  type SeenFinding,
  stateJson,
  TENANTS_SHOWN_MAX,
  tenantsPart,
} from './public-state.js';
import type { DashboardState, TenantRow } from './state.js';

const SOURCE = fileURLToPath(new URL('../../../src/dashboard/client', import.meta.url));
const SCRIPT_LINES_MAX = 700;

function headersOf(headers: readonly string[]): Map<string, string> {
  return new Map(headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1]!]] : [])));
}

const only = (html: string, tag: string): string => {
  const found = [...html.matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, 'g'))];
  assert.equal(found.length, 1, `one <${tag}>`);
  return found[0]![1]!;
};

describe('the operators’ page', () => {
  const { html, headers } = buildPage();

  test('its policy lets run and apply exactly the script and the style in it, and nothing else', () => {
    const policy = headersOf(headers).get('content-security-policy')!;
    const rules = new Map(policy.split('; ').map((rule) => [rule.split(' ')[0]!, rule.split(' ').slice(1).join(' ')]));
    const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    assert.equal(rules.get('default-src'), "'none'");
    assert.equal(rules.get('script-src'), hash(only(html, 'script')));
    assert.equal(rules.get('style-src'), hash(only(html, 'style')));
    assert.equal(rules.get('connect-src'), "'self'");
    assert.equal(rules.get('frame-ancestors'), "'none'");
    assert.equal(rules.get('base-uri'), "'none'");
    assert.equal(rules.get('form-action'), "'none'");
    assert.equal(rules.get('require-trusted-types-for'), "'script'");
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  });

  test('names no address outside, and has no handler or style in an attribute', () => {
    const withoutIcon = html.replace(/<link rel="icon" href="data:[^"]*">/, '');
    assert.doesNotMatch(withoutIcon, /(?:https?:)?\/\/[a-z]/i);
    assert.doesNotMatch(withoutIcon, /<(?:link|img|iframe|object|embed|base|form)\b|@import|url\(/i);
    assert.doesNotMatch(html.replace(only(html, 'script'), ''), /\s(?:on\w+|style)=/i);
  });

  test('its script parses, ends where it should, and has no import left', () => {
    const script = clientScript();
    assert.ok(new Script(script));
    assert.doesNotMatch(script, /<\/script|<!--|^import |^export |sourceMappingURL/im);
  });

  test('every element that its script names is there once', () => {
    const ids = [...html.matchAll(/\sid="([^"]+)"/g)].map((match) => match[1]!);
    assert.equal(new Set(ids).size, ids.length);
    const named = [...clientScript().matchAll(/(?:byId|fillRows)\(\s*'([^']+)'/g)].map((match) => match[1]!);
    assert.ok(named.length > 15);
    for (const id of named) assert.ok(ids.includes(id), id);
    for (const id of [...clientScript().matchAll(/figure\(\s*'([^']+)'/g)].map((match) => match[1]!)) {
      assert.ok(ids.includes(id) && ids.includes(`${id}-value`) && ids.includes(`${id}-words`), id);
    }
  });

  test('every table has a caption and headers, every panel a heading, and what scrolls can be reached by keyboard', () => {
    const count = (pattern: RegExp): number => [...html.matchAll(pattern)].length;
    const tables = count(/<table>/g);
    assert.equal(tables, 6);
    assert.equal(count(/<caption id="[\w-]+-caption">/g), tables);
    assert.equal(count(/<div class="scroll" role="region" aria-labelledby="[\w-]+-caption" tabindex="0">/g), tables);
    assert.equal(count(/<section [^>]*aria-label/g), count(/<section /g));
    assert.ok(count(/<th scope="col"/g) > 30);
    assert.match(html, /<html lang="en">/);
  });
});

describe('the page’s script', () => {
  const files = readdirSync(SOURCE).filter((name) => name.endsWith('.ts'));
  const texts = files.map((name) => ({ name, text: readFileSync(`${SOURCE}/${name}`, 'utf8') }));

  test('is all of its folder, in under 700 lines', () => {
    assert.deepEqual(files.map((name) => name.replace('.ts', '')).sort(), [...CLIENT_MODULES].sort());
    const lines = texts.reduce((total, { text }) => total + text.split('\n').length, 0);
    assert.ok(lines < SCRIPT_LINES_MAX, `${lines} lines`);
  });

  test('puts strings into the page as text only', () => {
    const ways =
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|setHTML|\beval\b|new Function|\.href\b|\.src\b|setAttribute\('(?:on|href|src|style)/;
    for (const { name, text } of texts) assert.doesNotMatch(text, ways, name);
  });

  test('asks at one place, for its own state, and keeps nothing in the browser', () => {
    const joined = texts.map(({ text }) => text).join('\n');
    assert.equal([...joined.matchAll(/\bfetch\(/g)].length, 1);
    assert.match(joined, /fetch\('state'/);
    assert.doesNotMatch(
      joined,
      /XMLHttpRequest|WebSocket|EventSource|sendBeacon|localStorage|sessionStorage|cookie|https?:/,
    );
    // What is listened to is bound once, whatever comes: a reading adds no listener.
    assert.equal([...joined.matchAll(/addEventListener\(/g)].length, 2);
    assert.equal([...joined.matchAll(/^\S.*addEventListener\(/gm)].length, 2);
  });
});

describe('the page’s numbers', () => {
  const tenant = (name: string, running: number): TenantRow => ({
    name,
    running,
    waiting: 0,
    leased: 0,
    draining: 0,
    cached: null,
  });
  const finding = (id: string, severity: SeenFinding['severity']): SeenFinding => ({
    id,
    severity,
    title: id,
    where: { node: 'n', source: 's' },
    observed: '',
    wanted: '',
    change: '',
    references: [],
    certain: true,
    count: 1,
    firstMs: 0,
    lastMs: 0,
  });

  test('tenants keep their order while all fit; beyond that the idle ones are left out, and counted', () => {
    const few = [tenant('b', 0), tenant('a', 2)];
    assert.deepEqual(tenantsPart(few), { rows: few, total: 2 });
    const many = Array.from({ length: TENANTS_SHOWN_MAX + 50 }, (_, index) => tenant(`t${index}`, index > 240 ? 1 : 0));
    const part = tenantsPart(many);
    assert.equal(part.total, TENANTS_SHOWN_MAX + 50);
    assert.equal(part.rows.length, TENANTS_SHOWN_MAX);
    assert.deepEqual(
      part.rows.slice(0, 10).map(({ name }) => name),
      ['t241', 't242', 't243', 't244', 't245', 't246', 't247', 't248', 't249', 't0'],
    );
  });

  test('findings come worst first, bounded, with the counts of all', () => {
    const all = Array.from({ length: FINDINGS_SHOWN_MAX + 7 }, (_, index) => finding(`f${index}`, 'low'));
    const part = findingsPart([...all, finding('grave', 'critical')]);
    assert.equal(part.rows[0]!.id, 'grave');
    assert.equal(part.rows.length, FINDINGS_SHOWN_MAX);
    assert.equal(part.total, FINDINGS_SHOWN_MAX + 8);
    assert.deepEqual(part.bySeverity, { critical: 1, high: 0, medium: 0, low: FINDINGS_SHOWN_MAX + 7, info: 0 });
  });

  test('no control character and no endless text leaves', () => {
    const findings = findingsPart([
      { ...finding('x', 'high'), title: 'a\u0000\u001b[31m\u202eb', observed: 'y'.repeat(5000) },
    ]);
    const text = stateJson({ findings } as unknown as DashboardState);
    assert.doesNotMatch(text, /[\u0000-\u001f\u007f-\u009f\u202e]/);
    const row = (JSON.parse(text) as DashboardState).findings.rows[0]!;
    assert.equal(row.title, 'a\\u0000\\u001b[31m\\u202eb');
    assert.equal(row.observed.length, 600);
    assert.ok(row.observed.endsWith('…'));
  });
});
