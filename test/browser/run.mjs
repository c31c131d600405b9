/**
 * The operators' page in a real browser, in front of a real server with two tenants at work. `npm run test:browser` runs it;
 * `-- --keep` writes the pictures into docs/. `CHROMIUM` names the browser where it is not at one of the usual places.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launchChromium } from './chromium.mjs';
import { contrastOf } from './contrast.mjs';
import { startTraffic } from './traffic.mjs';
import './verify-page.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const KEYS = { acme: 'acme-key-for-the-browser-test', globex: 'globex-key-for-the-browser-test' };
const OPS_KEY = 'operators-key-for-the-browser-test';
const PICTURES = process.env.PICTURES ?? `${ROOT}docs`;
const KEEP = process.argv.includes('--keep') || process.env.PICTURES !== undefined;
/** Bytes: what a README should make its readers load. */
const PICTURE_BYTES_MAX = 300_000;

/** Starts `cofferdam serve`; resolves with its facts. */
async function serve(...flags) {
  const tenants = Object.keys(KEYS).flatMap((name) => ['--tenant', `${name}=env:${name.toUpperCase()}_KEY`]);
  const args = [
    'dist/src/cli/main.js',
    'serve',
    '--port',
    '0',
    '--ops-port',
    '0',
    '--output',
    'json',
    ...tenants,
    ...flags,
  ];
  const env = { ...process.env, ACME_KEY: KEYS.acme, GLOBEX_KEY: KEYS.globex, OPS_KEY };
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const facts = await new Promise((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
      if (text.includes('\n')) resolve(JSON.parse(text));
    });
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const stop = () =>
    new Promise((resolve) => {
      if (child.exitCode !== null) return resolve();
      child.once('exit', resolve);
      child.kill('SIGTERM');
    });
  return { ...facts, stop };
}

/** A page that remembers what went wrong and what it asked for. */
async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const errors = [];
  const requests = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') errors.push(message.text());
  });
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector('#live-kind')?.textContent === 'Live');
  return { page, errors, requests, close: () => context.close() };
}

const live = (page) => page.locator('#live-kind').textContent();
const numberIn = (text) => Number(text.replaceAll(',', ''));

describe('the operators’ page in a browser', () => {
  let browser;
  let server;
  let traffic;
  before(async () => {
    browser = await launchChromium();
    // The prefill pool holds less than is advertised, as in the public incident.
    server = await serve('--prefill-pool', '2048');
    traffic = startTraffic(server.url, KEYS);
  });
  after(async () => {
    await traffic?.stop();
    await server?.stop();
    await browser?.close();
  });

  test('shows both tenants at work, its numbers move, and it asks nobody but its own server', async () => {
    const { page, errors, requests, close } = await open(browser, server.opsUrl);
    const admitted = async () => numberIn(await page.locator('#figure-admitted-value').textContent());
    const first = await admitted();
    await page.waitForFunction(
      (seen) => Number(document.querySelector('#figure-admitted-value').textContent.replaceAll(',', '')) > seen,
      first,
    );
    assert.deepEqual(await page.locator('#tenants-rows th').allTextContents(), ['acme', 'globex']);
    assert.match(await page.locator('#capacity-words').textContent(), /does not fit|holds the advertised/);
    await page.waitForFunction(() =>
      document.querySelector('#refusals-rows').textContent.includes('context_length_exceeded'),
    );
    assert.equal(await page.locator('#alarm').isVisible(), false);
    assert.ok(
      requests.every((url) => url.startsWith(server.opsUrl) || url.startsWith('data:')),
      requests.join('\n'),
    );
    assert.deepEqual(errors, []);
    await close();
  });

  for (const colorScheme of ['light', 'dark']) {
    test(`every text has a contrast of 4.5 or more, ${colorScheme}`, async () => {
      const { page, close } = await open(browser, server.opsUrl, { colorScheme, reducedMotion: 'reduce' });
      await page.locator('#findings-rows summary').first().click();
      const found = await page.evaluate(contrastOf);
      assert.ok(found.texts > 60, `only ${found.texts} texts`);
      assert.deepEqual(found.weak, []);
      await close();
    });
  }

  for (const width of [360, 768, 1440]) {
    test(`the page is not wider than ${width} px`, async () => {
      const { page, close } = await open(browser, server.opsUrl, { viewport: { width, height: 800 } });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${wide} px`);
      if (KEEP && process.env.PICTURES)
        await page.screenshot({ path: `${PICTURES}/width-${width}.png`, fullPage: true });
      await close();
    });
  }

  test('by keyboard: skip link, pause, every table and finding in order, each with a focus that shows', async () => {
    const { page, close } = await open(browser, server.opsUrl);
    const walked = [];
    for (let step = 0; step < 30; step++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => {
        const node = document.activeElement;
        if (node === document.body) return null;
        const style = getComputedStyle(node);
        const name =
          node.id || node.getAttribute('aria-labelledby') || node.getAttribute('href') || node.tagName.toLowerCase();
        return { name, shows: style.outlineStyle !== 'none' && Number.parseFloat(style.outlineWidth) >= 2 };
      });
      if (at === null) break;
      assert.ok(at.shows, `the focus on ${at.name} does not show`);
      walked.push(at.name);
    }
    const expected = [
      '#main',
      'pause',
      'capacity-caption',
      'tenants-caption',
      'summary',
      'pools-caption',
      'latency-caption',
    ];
    expected.push('refusals-caption', 'guards-caption', 'metrics', 'findings', 'state', 'healthz');
    assert.deepEqual(walked, expected);
    await page.locator('#findings-rows summary').first().focus();
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('#findings-rows details').first().getAttribute('open'), '');
    // What was opened stays open, and focused, while the numbers move.
    await page.waitForTimeout(2500);
    assert.equal(await page.evaluate(() => document.activeElement.tagName), 'SUMMARY');
    assert.equal(await page.locator('#findings-rows details').first().getAttribute('open'), '');
    await page.locator('#pause').focus();
    await page.keyboard.press('Space');
    assert.equal(await live(page), 'Paused');
    await close();
  });

  test('hostile names and texts are shown as they are, and become no markup', async () => {
    const hostile = '<img src=x onerror=alert(1)></td><script>alert(2)</script>\u0000\u202e';
    const { page, errors, close } = await open(browser, server.opsUrl);
    await page.route('**/state', async (route) => {
      const state = JSON.parse(await (await route.fetch()).text(), (_key, value) =>
        typeof value === 'string' && !['critical', 'high', 'medium', 'low', 'info'].includes(value) ? hostile : value,
      );
      await route.fulfill({ json: state });
    });
    await page.waitForFunction((text) => document.querySelector('#tenants-rows th').textContent === text, hostile);
    assert.equal(await page.locator('#findings-rows .title').first().textContent(), hostile);
    assert.equal(await page.locator('img, body script:not(:last-child)').count(), 0);
    assert.deepEqual(errors, []);
    await close();
  });

  test('paused it asks for nothing; hidden it asks for nothing; shown again it goes on', async () => {
    const { page, requests, close } = await open(browser, server.opsUrl);
    const quiet = async () => {
      await page.waitForTimeout(300);
      const count = requests.length;
      await page.waitForTimeout(2500);
      return requests.length - count;
    };
    await page.click('#pause');
    assert.equal(await quiet(), 0);
    await page.click('#pause');
    const hide = (hidden) =>
      page.evaluate((value) => {
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
        document.dispatchEvent(new Event('visibilitychange'));
      }, hidden);
    await hide(true);
    assert.equal(await quiet(), 0);
    await hide(false);
    assert.ok((await quiet()) >= 2);
    await close();
  });

  test('keeps its pictures, light and dark', {
    skip: KEEP ? false : 'pictures are kept with `-- --keep`',
  }, async () => {
    for (const colorScheme of ['light', 'dark']) {
      const { page, close } = await open(browser, server.opsUrl, {
        colorScheme,
        viewport: { width: 1280, height: 900 },
      });
      await page.waitForFunction(() =>
        [...document.querySelectorAll('#tenants-rows tr')].every((row) => row.children[3].textContent !== '0'),
      );
      const path = `${PICTURES}/dashboard${colorScheme === 'dark' ? '-dark' : ''}.png`;
      await page.screenshot({ path, fullPage: true });
      assert.ok(statSync(path).size < PICTURE_BYTES_MAX, `${path} has ${statSync(path).size} bytes`);
      await close();
    }
  });

  test('says since when its numbers are stale when the server is gone', async (t) => {
    const short = await serve();
    t.after(() => short.stop());
    const { page, close } = await open(browser, short.opsUrl);
    await short.stop();
    await page.waitForFunction(() => document.querySelector('#live-kind').textContent === 'Stale');
    assert.match(
      await page.locator('#stale').textContent(),
      /does not answer\. The numbers below are stale, of \d\d:\d\d:\d\d\./,
    );
    assert.match(await page.locator('#live').textContent(), /since \d\d:\d\d:\d\d/);
    if (process.env.PICTURES) await page.screenshot({ path: `${PICTURES}/stale.png` });
    await close();
  });

  test('a fault that is on stands above everything, in words', async (t) => {
    const broken = await serve('--fault', 'reuse-before-drain', '--guard-off', 'salt');
    t.after(() => broken.stop());
    const { page, errors, close } = await open(browser, broken.opsUrl, {
      colorScheme: 'dark',
      viewport: { width: 360, height: 800 },
    });
    assert.match(
      await page.locator('#alarm').textContent(),
      /not kept apart here.*fault on: reuse-before-drain.*off: .*salt/,
    );
    assert.match(await page.locator('#guards-rows').textContent(), /saltOFF/);
    if (process.env.PICTURES) await page.screenshot({ path: `${PICTURES}/alarm.png` });
    assert.deepEqual(errors, []);
    await close();
  });

  test('the operators’ key is typed as a password; without it there is nothing', async (t) => {
    const keyed = await serve('--ops-key', 'env:OPS_KEY');
    t.after(() => keyed.stop());
    const context = await browser.newContext({ httpCredentials: { username: 'anyone', password: OPS_KEY } });
    const page = await context.newPage();
    await page.goto(keyed.opsUrl);
    await page.waitForFunction(() => document.querySelector('#live-kind').textContent === 'Live');
    await context.close();
    const bare = await (await browser.newContext()).newPage();
    const answer = await bare.goto(keyed.opsUrl).catch(() => null);
    assert.ok(answer === null || answer.status() === 401);
    await bare.context().close();
  });

  test('a page of another origin reads nothing, shows it in no frame, and may link to it', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const other = server.url; // Another port is another origin.
    await page.route(`${other}/other`, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<a href="#">x</a>' }),
    );
    await page.goto(`${other}/other`);
    const tried = await page.evaluate(async (ops) => {
      const read = await fetch(`${ops}/state`).then(
        () => 'read',
        () => 'refused',
      );
      const frame = document.createElement('iframe');
      frame.src = ops;
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      return { read };
    }, server.opsUrl);
    assert.deepEqual(tried, { read: 'refused' });
    const framed = page.frames().find((frame) => frame !== page.mainFrame());
    assert.ok(!(await framed.content()).includes('Cofferdam: operators'));
    await page.evaluate((ops) => document.querySelector('a').setAttribute('href', ops), server.opsUrl);
    await page.click('a');
    await page.waitForFunction(() => document.querySelector('#live-kind')?.textContent === 'Live');
    await context.close();
  });
});
