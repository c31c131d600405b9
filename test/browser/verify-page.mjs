/** The page of `cofferdam verify --output html` in a real browser, opened from a file, with the network off. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { launchChromium } from './chromium.mjs';
import { contrastOf } from './contrast.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PICTURES = process.env.PICTURES ?? `${ROOT}docs`;
const KEEP = process.argv.includes('--keep') || process.env.PICTURES !== undefined;
const PICTURE_BYTES_MAX = 300_000;
const FAULT = 'reuse-before-drain';
const DEPTH = 22;

describe('the page of a counterexample in a browser', () => {
  let browser;
  let folder;
  let url;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'cofferdam-page-'));
    const file = join(folder, 'page.html');
    const args = ['dist/src/cli/main.js', 'verify', '--fault', FAULT, '--output', `html=${file}`];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    url = pathToFileURL(file).href;
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function open(hash = '', options = {}) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, offline: true, ...options });
    const page = await context.newPage();
    const errors = [];
    const requests = [];
    page.on('console', (message) => errors.push(message.text()));
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('request', (request) => requests.push(request.url()));
    await page.goto(url + hash);
    const close = async () => {
      assert.deepEqual(errors, []);
      assert.deepEqual(requests, [url]);
      await context.close();
    };
    return { page, close };
  }

  const text = (page, selector) => page.locator(selector).textContent();

  test('steps by keyboard to the broken state, and says whose bytes lie in whose page', async () => {
    const { page, close } = await open();
    assert.equal(await text(page, 'h1'), FAULT);
    assert.equal(await text(page, '#place'), `Step 0 of ${DEPTH}`);
    assert.equal(await page.locator('#broken').isVisible(), false);
    for (let step = 0; step < DEPTH; step++) await page.keyboard.press('ArrowRight');
    assert.equal(await text(page, '#place'), `Step ${DEPTH} of ${DEPTH}`);
    assert.equal(await page.evaluate(() => scrollY), 0);
    assert.ok(await page.locator('[aria-current]').isVisible());
    assert.match(await text(page, '#broken'), /^noForeignRead is broken: a token left/);
    assert.match(await text(page, '#decode li:first-child'), /Bleased.*stale: of Aread by B: not its own$/);
    await page.keyboard.press('ArrowRight');
    assert.equal(await text(page, '#place'), `Step ${DEPTH} of ${DEPTH}`);
    await page.keyboard.press('Home');
    assert.equal(await text(page, '#place'), `Step 0 of ${DEPTH}`);
    assert.equal(await page.locator('#broken').isVisible(), false);
    await close();
  });

  test('explores: an action is taken by button and by keyboard, and the address shows the same again', async () => {
    const { page, close } = await open();
    await page.click('#clear');
    await page.getByRole('button', { name: 'the client of B submits it' }).click();
    assert.equal(await text(page, '#last'), 'the client of B submits it');
    assert.equal(await page.locator('#flights li').count(), 2);
    await page.locator('#flights button').first().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    assert.equal(await text(page, '#place'), 'Step 2 of 2');
    assert.ok(await page.evaluate(() => document.activeElement.matches('button.choice')));
    await page.keyboard.press('ArrowLeft');
    const seen = await page.locator('main').textContent();
    const hash = new URL(page.url()).hash;
    assert.match(hash, /^#0\/1\/submit1,\w+\d+$/);
    const again = await open(hash);
    assert.equal(await again.page.locator('main').textContent(), seen);
    await again.close();
    await page.evaluate(() => {
      location.hash = '#0/0/<img src=x onerror=alert(1)>';
    });
    await page.waitForFunction(() => document.querySelector('#note').textContent !== '');
    assert.match(await text(page, '#note'), /The address names no way through this page/);
    assert.equal(await page.locator('img').count(), 0);
    await close();
  });

  test('the same way in the world with every guard on ends where a guard stops it', async () => {
    const { page, close } = await open();
    await page.keyboard.press('End');
    await page.selectOption('#world', { index: 1 });
    const [, step] = /^Step (\d+) does not go the same way here/.exec(await text(page, '#note'));
    assert.ok(Number(step) > 1 && Number(step) <= DEPTH);
    assert.equal(await page.locator('#broken').isVisible(), false);
    await page.click('#settle');
    assert.match(await text(page, '#note'), /^It can settle in \d+ more steps/);
    await page.keyboard.press('End');
    assert.match(await text(page, '#settled'), /^Settled/);
    await close();
  });

  for (const colorScheme of ['light', 'dark']) {
    test(`every text has a contrast of 4.5 or more, ${colorScheme}`, async () => {
      const { page, close } = await open('', { colorScheme });
      await page.keyboard.press('End');
      await page.locator('summary').click();
      const found = await page.evaluate(contrastOf);
      assert.ok(found.texts > 120, `only ${found.texts} texts`);
      assert.deepEqual(found.weak, []);
      await close();
    });
  }

  for (const width of [360, 768, 1440]) {
    test(`the page is not wider than ${width} px`, async () => {
      const { page, close } = await open('', { viewport: { width, height: 800 } });
      await page.keyboard.press('End');
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${wide} px`);
      if (process.env.PICTURES)
        await page.screenshot({ path: `${PICTURES}/verify-width-${width}.png`, fullPage: true });
      await close();
    });
  }

  test('keeps its pictures, light and dark', {
    skip: KEEP ? false : 'pictures are kept with `-- --keep`',
  }, async () => {
    for (const colorScheme of ['light', 'dark']) {
      const { page, close } = await open('', { colorScheme, viewport: { width: 1280, height: 900 } });
      await page.keyboard.press('End');
      for (let back = 0; back < 3; back++) await page.keyboard.press('ArrowLeft');
      const path = `${PICTURES}/verify-page${colorScheme === 'dark' ? '-dark' : ''}.png`;
      await page.screenshot({ path });
      assert.ok(statSync(path).size < PICTURE_BYTES_MAX, `${path} has ${statSync(path).size} bytes`);
      await close();
    }
  });
});
