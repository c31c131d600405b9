/** The first answer of an engine at the start: had at once, or waited for where that was asked for. */
import { type Clock, sleep } from '../../base/clock.js';
import { CodedError } from '../../base/errors.js';
import { type Detected, detect, type DetectOptions, type Undetected } from './detect.js';

/** Milliseconds between two tries, and between two lines that say what is waited for. */
const AGAIN_MS = 1_000;
const SAID_EVERY_MS = 10_000;

export interface AwaitOptions extends DetectOptions {
  readonly clock: Clock;
  readonly wait: boolean;
  /** One line. */
  readonly log: (line: string) => void;
}

/** Throws CodedError `usage` where nothing that is known answers. */
export async function awaitEngine(options: AwaitOptions): Promise<Detected> {
  const { clock, wait, log } = options;
  let saidMs: number | null = null;
  for (;;) {
    const found = await detect(options);
    if ('kind' in found) return found;
    if (!wait || !found.isGone) throw refusal(options, found);
    const nowMs = clock.nowMs();
    if (saidMs === null || nowMs - saidMs >= SAID_EVERY_MS) {
      log(`waiting for ${options.url.host}: ${found.asked}: ${found.came}`);
      saidMs = nowMs;
    }
    await sleep(clock, AGAIN_MS);
  }
}

/** Certificates that are not believed, by node's codes for them. */
const CERTIFICATE = /CERT|SIGNATURE|ISSUER|ALTNAME/;

function refusal({ url }: DetectOptions, { asked, came, change, isGone }: Undetected): CodedError {
  const words = CERTIFICATE.test(came)
    ? 'Its certificate is not believed: name the authority with `--upstream-ca FILE`, or `ca` in the file.'
    : (change ?? (isGone ? 'Start it first, correct its address, or wait for it with `--wait`.' : ''));
  return new CodedError(
    'usage',
    `Expected an engine at ${url.origin} to answer ${asked}, got: ${came}. ${words}`.trim(),
  );
}
