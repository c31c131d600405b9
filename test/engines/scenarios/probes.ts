/** `cofferdam probe` against each engine: what it must find, and that it finds nothing with the gateway in front. */
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import {
  LLAMA_VERSION,
  NIXL_VERSION,
  type SglangVersion,
  startLlama,
  startSglangPair,
  startVllm,
  VLLM_VERSION,
} from '../engines.js';
import { MAIN } from '../folder.js';
import { startGateway, TENANTS } from '../gateway.js';
import { CouldNotRun } from '../could-not-run.js';
import type { Bench, Scenario, Side } from '../scenario.js';
import { startSplitter } from '../splitter.js';
import { CONTEXT_TOKENS, DECODE_POOL, PREFILL_POOL } from './sglang-pd.js';
import { NIXL_PAIR } from './vllm-nixl.js';

interface ProbeReport {
  readonly verdict: string;
  readonly experiments: readonly {
    readonly name: string;
    readonly verdict: string;
    readonly sent: number;
    readonly hits: number;
    readonly control: string;
    readonly evidence: readonly string[];
    readonly required: boolean;
  }[];
}

interface Probing {
  readonly side: Side;
  readonly url: string;
  /** Engines whose capacity is read, so that the limit is aimed at exactly. */
  readonly engines: readonly string[];
  readonly experiments: readonly string[];
  /** Environment variables that hold the tenants' keys; null: the endpoint knows no keys. */
  readonly variables: Readonly<Record<string, string>> | null;
  readonly expects: string;
}

const DURATION = '15m';
const PROBE_MS_MAX = 25 * 60_000;

async function probe(bench: Bench, { side, url, engines, experiments, variables, expects }: Probing): Promise<void> {
  const record = bench.folder.at('logs', `probe-${side}.jsonl`);
  rmSync(record, { force: true });
  const names = Object.keys(variables ?? {});
  const start = [MAIN, 'probe', `${url}/v1`, '--model', 'lab', '--only', experiments.join(','), '--yes'];
  const bounds = ['--together', '8', '--max-duration', DURATION, '--output', 'json', '--record', record];
  const args = [
    ...start,
    ...TENANTS.flatMap((name, i) => ['--tenant', `${name}=${variables === null ? 'none' : `env:${names[i]}`}`]),
    ...engines.flatMap((engine) => ['--engine', engine]),
    ...bounds,
  ];
  const text = await output(args, variables ?? {});
  const report = JSON.parse(text) as ProbeReport;
  for (const { name, verdict, sent, hits, control, evidence } of report.experiments) {
    if (!experiments.includes(name)) continue;
    bench.row({
      side,
      sent: `probe ${name}: ${sent} requests`,
      cameBack: `${verdict}, ${hits} hits. ${evidence[0] ?? ''} Control: ${control}`,
      heldBack: '',
      isAsExpected: side === 'direct' || verdict === 'isolated' || verdict === 'no-cache-seen',
    });
  }
  bench.row({
    side,
    sent: `probe, ${experiments.join(', ')}`,
    cameBack: `verdict: ${report.verdict}`,
    heldBack: '',
    isAsExpected: report.verdict === expects,
  });
}

/** Standard output of the command; it ends with 0, 1 or 3 where it made a report. */
function output(args: readonly string[], variables: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...variables };
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env, timeout: PROBE_MS_MAX });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    child.on('error', ({ message }) => reject(new CouldNotRun(`the probe: ${message}`)));
    child.on('close', (code) => {
      if (out.trimStart().startsWith('{')) resolve(out);
      else reject(new CouldNotRun(`the probe ended with ${code}: ${err.trim().slice(-600)}`));
    });
  });
}

/** The endpoint alone, then with the gateway before `upstreams`. */
async function bothSides(
  bench: Bench,
  direct: { readonly url: string; readonly engines: readonly string[]; readonly expects: string },
  upstreams: readonly string[],
  experiments: readonly string[],
  flags: readonly string[] = [],
): Promise<void> {
  if (bench.sides.includes('direct')) await probe(bench, { ...direct, side: 'direct', experiments, variables: null });
  if (!bench.sides.includes('through')) return;
  const gateway = await startGateway(bench, upstreams, flags);
  const { url, variables } = gateway;
  const engines = direct.engines;
  await probe(bench, { side: 'through', url, engines, experiments, variables, expects: 'isolated' });
  await gateway.stop();
}

function sglangProbe(version: SglangVersion, expects: string, experiments: readonly string[]): Scenario {
  return {
    name: `probe-sglang-${version}`,
    title: `the probe says ${expects}`,
    engines: `SGLang ${version}, prefill and decode over Mooncake`,
    async run(bench) {
      const pair = await startSglangPair(bench, {
        version,
        prefillPools: [PREFILL_POOL],
        decodePool: DECODE_POOL,
        contextTokens: CONTEXT_TOKENS,
      });
      const splitter = await startSplitter({ kind: 'sglang', prefill: pair.prefill, decode: pair.decode.url });
      const engines = [...pair.prefill.map(({ url }) => url), pair.decode.url];
      await bothSides(bench, { url: splitter.url, engines, expects }, engines, experiments);
      await splitter.close();
    },
  };
}

export const nixlProbe: Scenario = {
  name: 'probe-vllm-nixl',
  title: 'the probe says leaks',
  engines: `vLLM ${VLLM_VERSION}, prefill and decode over NIXL ${NIXL_VERSION}`,
  async run(bench) {
    const nodes = await startVllm(bench, NIXL_PAIR);
    const [prefill, decode] = nodes.map(({ url }) => url) as [string, string];
    const splitter = await startSplitter({ kind: 'nixl', prefill, decode });
    await bothSides(bench, { url: splitter.url, engines: [], expects: 'leaks' }, [splitter.url], ['handles']);
    await splitter.close();
  },
};

export const llamaProbe: Scenario = {
  name: 'probe-llama',
  title: 'the probe says starves',
  engines: `llama-server ${LLAMA_VERSION}`,
  async run(bench) {
    const { url } = await startLlama(bench, { poolTokens: 4096, slots: 4 });
    // Where one request may have the whole pool, all others wait for its end: a quarter each.
    const flags = ['--upstream-limit', '1024'];
    await bothSides(bench, { url, engines: [], expects: 'starves' }, [url], ['starve'], flags);
  },
};

export const sglangProbe18: Scenario = sglangProbe('0.5.18', 'leaks', ['boundary', 'canary']);
export const sglangProbe23: Scenario = sglangProbe('0.5.23', 'starves', ['starve']);
