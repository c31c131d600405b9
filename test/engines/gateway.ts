/** `cofferdam serve` in front of engines that run already, with the tenants of the scenarios. */
import { randomBytes } from 'node:crypto';
import { sleep } from '../../src/base/clock.js';
import { type Ask, ask, type Said } from './ask.js';
import { MAIN } from './folder.js';
import type { Started } from './processes.js';
import { CouldNotRun } from './could-not-run.js';
import type { Bench } from './scenario.js';

export const TENANTS = ['acme', 'globex'] as const;
export type TenantName = (typeof TENANTS)[number];

const START_MS_MAX = 120_000;
const POLL_MS = 50;
const KEY_BYTES = 24;

export interface Gateway {
  readonly url: string;
  readonly opsUrl: string;
  readonly process: Started;
  /** Keys by the name of the environment's variable that holds them. */
  readonly variables: Readonly<Record<string, string>>;
  /** What it printed of the upstreams and of its size at its start. */
  readonly facts: Readonly<Record<string, unknown>>;
  ask(tenant: TenantName, options: Omit<Ask, 'url' | 'key'>): Promise<Said>;
  key(tenant: TenantName): string;
  stop(): Promise<void>;
}

const variableOf = (tenant: TenantName): string => `COFFERDAM_KEY_${tenant.toUpperCase()}`;

/** Starts it over `upstreams` with further flags, and waits until it takes requests. Throws `CouldNotRun` where it does not start. */
export async function startGateway(
  bench: Bench,
  upstreams: readonly string[],
  flags: readonly string[] = [],
): Promise<Gateway> {
  const keys = new Map(TENANTS.map((name) => [name, `sk-${randomBytes(KEY_BYTES).toString('base64url')}`]));
  const variables = Object.fromEntries(TENANTS.map((name) => [variableOf(name), keys.get(name)!]));
  const serve = [MAIN, 'serve', '--port', '0', '--ops-port', '0', '--output', 'json'];
  const process_ = bench.processes.start({
    name: 'cofferdam-serve',
    command: process.execPath,
    args: [
      ...serve,
      ...upstreams.flatMap((url) => ['--upstream', url]),
      ...TENANTS.flatMap((name) => ['--tenant', `${name}=env:${variableOf(name)}`]),
      ...flags,
    ],
    variables,
  });
  const facts = await untilFacts(bench, process_);
  const url = String(facts.url);
  return {
    url,
    opsUrl: String(facts.opsUrl),
    process: process_,
    variables,
    facts,
    key: (tenant) => keys.get(tenant)!,
    ask: (tenant, options) => ask({ ...options, url, key: keys.get(tenant)! }),
    stop: () => bench.processes.stop([process_]),
  };
}

/** Its first line of JSON; warnings come before it, on standard error. */
async function untilFacts(bench: Bench, started: Started): Promise<Record<string, unknown>> {
  const endMs = bench.clock.nowMs() + START_MS_MAX;
  for (;;) {
    const line = started
      .said()
      .split('\n')
      .slice(0, -1)
      .find((each) => each.startsWith('{') && each.includes('"opsUrl"'));
    if (line !== undefined) return JSON.parse(line) as Record<string, unknown>;
    if (started.isOver || bench.clock.nowMs() > endMs) {
      throw new CouldNotRun(`cofferdam serve did not start: ${started.said().trim().slice(-600)}`);
    }
    await sleep(bench.clock, POLL_MS);
  }
}
