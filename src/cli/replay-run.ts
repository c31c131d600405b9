/** `cofferdam replay`: the list of faults, one fault, or all of them with every guard off and with every guard on. */
import { assert } from '../base/assert.js';
import { CATALOGUE, FAULTS, isFaultName } from '../handoff/faults.js';
import { ALL_GUARDS, type GuardBits, guardBits } from '../handoff/guards.js';
import {
  fullMatrixHead,
  fullMatrixRow,
  matrixFoot,
  matrixHead,
  matrixRow,
  renderList,
  renderResult,
} from '../replay/render.js';
import { replayFault, replayMatrix, type ReplayResult } from '../replay/replay.js';
import type { UpstreamMaker } from '../replay/world.js';
import { countTokens, encode, renderChat, TokenDecoder } from '../tokenizer/bytes.js';
import { EmbeddedUpstream } from '../upstream/embedded/adapter.js';
import { type CliIo, EXIT } from './io.js';
import type { ReplayOptions } from './options.js';

/** Behind acme and globex. */
const SELF_TEST_TENANT = 3;

/** The embedded engine behind the gateway's contract, as `serve` has it. */
export const replayUpstream: UpstreamMaker = (engine, clock) =>
  new EmbeddedUpstream({
    engine,
    clock,
    codec: { encode, countTokens, renderChat, newDecoder: () => new TokenDecoder() },
    selfTestTenant: SELF_TEST_TENANT,
  });

/** Resolves with the exit code. */
export function runReplay(options: ReplayOptions, io: CliIo): Promise<number> {
  switch (options.what.kind) {
    case 'list':
      return Promise.resolve(list(options, io));
    case 'matrix':
      return matrix(options, io, false);
    case 'full-matrix':
      return matrix(options, io, true);
    case 'trace': {
      const { path } = options.what;
      return import('./replay-trace.js').then(({ runReplayTrace }) => runReplayTrace(path, options, io));
    }
    case 'fault':
      return oneFault(options.what.fault, options, io);
  }
}

function list(options: ReplayOptions, io: CliIo): number {
  io.out(options.output === 'json' ? `${JSON.stringify(FAULTS.map((name) => CATALOGUE[name]))}\n` : renderList());
  return EXIT.clean;
}

async function matrix(options: ReplayOptions, io: CliIo, isFull: boolean): Promise<number> {
  const isTable = options.output === 'table';
  if (isTable) io.out(isFull ? fullMatrixHead() : matrixHead());
  const results = await replayMatrix({ seed: options.seed, upstream: replayUpstream }, isFull, (row) => {
    if (isTable) io.out(isFull ? fullMatrixRow(row) : matrixRow(row));
  });
  io.out(isTable ? matrixFoot(results) : `${JSON.stringify(results)}\n`);
  return exitCode(results);
}

async function oneFault(fault: string, options: ReplayOptions, io: CliIo): Promise<number> {
  assert(isFaultName(fault), 'the options name a fault that exists');
  const sets = guardSets(options);
  const results: ReplayResult[] = [];
  for (const guards of sets) {
    const result = await replayFault({ fault, guards, seed: options.seed, upstream: replayUpstream });
    if (options.output === 'table') io.out(`${results.length > 0 ? '\n' : headOf(fault)}${renderResult(result)}`);
    results.push(result);
  }
  if (options.output === 'json') io.out(`${JSON.stringify(sets.length === 1 ? results[0] : results)}\n`);
  return exitCode(results);
}

function headOf(fault: keyof typeof CATALOGUE): string {
  const { deviation, source } = CATALOGUE[fault];
  return `${deviation}\nSource: ${source}\n\n`;
}

/** Nothing said: with every guard off and with every guard on, since the difference is the point. */
function guardSets({ guards, guardsOff }: ReplayOptions): GuardBits[] {
  if (guards === null && guardsOff.length === 0) return [0, ALL_GUARDS];
  return [guards === 'off' ? 0 : ALL_GUARDS & ~guardBits(guardsOff)];
}

function exitCode(results: readonly ReplayResult[]): number {
  return results.every(({ evidence }) => evidence.isAsExpected) ? EXIT.clean : EXIT.findings;
}
