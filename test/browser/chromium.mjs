import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const CHROMIUMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** The browser at one of the usual places, or the one that `CHROMIUM` names. */
export function launchChromium() {
  const executablePath = process.env.CHROMIUM ?? CHROMIUMS.find((path) => existsSync(path));
  assert.ok(executablePath, 'Expected a Chromium, at a usual place or named by `CHROMIUM`.');
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}
