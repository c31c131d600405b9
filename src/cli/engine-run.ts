/** `cofferdam engine`: the embedded engine alone, until a signal ends it. */
import { SystemClock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import type { EngineConfig } from '../engine/config.js';
import { EngineServer, type EngineUrl } from '../engine/http/server.js';
import { ThreadedEngine } from '../engine/threaded-engine.js';
import { effectiveLimit } from '../handoff/admission.js';
import { faultsOf } from '../handoff/faults.js';
import { ALL_GUARDS, guardsOf } from '../handoff/guards.js';
import { embeddedEngineConfig } from './engine-options.js';
import { type CliIo, EXIT } from './io.js';
import type { EngineOptions } from './options.js';
import { untilSignal } from './signals.js';
import { brokenMark } from './start-lines.js';
import { openTrace, stoppedWords } from './trace-file.js';

export interface RunningEngine {
  readonly config: EngineConfig;
  readonly urls: readonly EngineUrl[];
  /** False: a trace was asked for, and is not whole. */
  close(): Promise<boolean>;
}

/** Starts all of it, or nothing. `onTraceStop` hears why a trace goes no further. Throws CodedError. */
export async function startEngine(
  options: EngineOptions,
  onTraceStop: (words: string) => void = () => {},
): Promise<RunningEngine> {
  const config = embeddedEngineConfig(options.sizes, options.broken);
  if (effectiveLimit(config) === null) {
    throw new CodedError('usage', 'Expected a context and pools that hold a prompt, got none that do.');
  }
  const clock = new SystemClock();
  const beginMs = clock.nowMs();
  const trace = await openTrace(options.trace, config, onTraceStop);
  const engine = await ThreadedEngine.start({ config, clock, ...(trace === null ? {} : { trace: trace.writer }) });
  const server = new EngineServer({ engine, config, clock, startupS: (clock.nowMs() - beginMs) / 1000 });
  const close = async (): Promise<boolean> => {
    await server.close();
    await engine.close();
    await trace?.close();
    return trace === null || trace.stopped === null;
  };
  try {
    return { config, urls: await server.listen(options.host, options.listeners), close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

/** The start-up facts as one line of JSON. */
export function engineFacts({ config, urls }: RunningEngine): string {
  const limit = effectiveLimit(config);
  return JSON.stringify({
    ...Object.fromEntries(urls.map(({ role, url }) => [role === 'single' ? 'url' : `${role}Url`, url])),
    model: 'lab',
    advertised: config.context,
    prefillPool: config.prefillPool,
    decodePool: config.decodePool,
    pageSize: config.pageTokens,
    effectiveLimit: limit?.tokens ?? null,
    limitedBy: limit?.limitedBy ?? null,
    faults: faultsOf(config.rules.faults),
    guardsOff: guardsOf(ALL_GUARDS & ~config.rules.guards),
  });
}

/** What a person sees. With a fault on or a guard off, every line says so. */
export function engineLines(running: RunningEngine): string {
  const { config, urls } = running;
  const mark = brokenMark(config.rules);
  const limit = effectiveLimit(config);
  const [first] = urls;
  const lines = [
    `The embedded engine serves \`lab\` ${urls.length === 1 ? 'as one node' : 'as a prefill and a decode node'}, in SGLang's HTTP dialect, without a key:`,
    '',
    ...urls.map(({ role, url }) => `  ${(role === 'single' ? 'node' : role).padEnd(18)}  ${url}`),
    '',
    `  advertised context  ${config.context} tokens`,
    `  prefill pool        ${config.prefillPool} tokens`,
    `  decode pool         ${config.decodePool} tokens`,
    `  effective limit     ${limit?.tokens} tokens of prompt, set by the ${limit?.limitedBy}`,
    '',
    urls.length === 1
      ? `  curl -s ${first?.url}/generate -H 'Content-Type: application/json' -d '{"text":"The word of the day is cofferdam. Today the word of the day is ","sampling_params":{"temperature":0,"max_new_tokens":9}}'`
      : '  Send each request to both nodes at once, with one `bootstrap_room`, as a router does.',
    '',
    'Ctrl-C ends it.',
    '',
  ];
  return lines.map((line) => `${mark}${line}`.trimEnd()).join('\n');
}

/** Resolves with the exit code when a signal has ended everything. */
export async function runEngine(options: EngineOptions, io: CliIo): Promise<number> {
  const running = await startEngine(options, (why) => io.err(`warning: ${stoppedWords(why)}\n`));
  const ended = untilSignal();
  let isWhole = true;
  try {
    io.out(options.output === 'json' ? `${engineFacts(running)}\n` : engineLines(running));
    const signal = await ended;
    if (options.output !== 'json')
      io.out(`\n${brokenMark(running.config.rules)}${signal}: open requests end, then the engine does.\n`);
  } finally {
    isWhole = await running.close();
  }
  return isWhole ? EXIT.clean : EXIT.unchecked;
}
