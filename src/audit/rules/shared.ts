/** What rules have in common: who is asked, what is not known, and how one flag, variable, sign or port becomes an outcome. */
import type { Severity } from '../../findings/finding.js';
import { WORKER_FLAG } from '../../upstream/command/read.js';
import type { KvTransferConfig, LogSign } from '../../upstream/reading.js';
import { best, flagOf, flagValue, isPaired, isTrue, samplesOf, signOf, switchOf, variableOf } from '../ask.js';
import { isLoopbackHost, type Reach, type ReachFact, reachOf } from '../exposure.js';
import type { MetricSample, NodeFacts, Sourced } from '../facts.js';
import { askCommand } from '../place.js';
import { failed, notApplicable, notChecked, type Observed, passed, type RuleOutcome } from '../rule.js';

export const sglangIssue = (number: number): string => `https://github.com/sgl-project/sglang/issues/${number}`;
export const vllmIssue = (number: number): string => `https://github.com/vllm-project/vllm/issues/${number}`;
export const llamaIssue = (number: number): string => `https://github.com/ggml-org/llama.cpp/issues/${number}`;
export const lmcacheIssue = (number: number): string => `https://github.com/LMCache/LMCache/issues/${number}`;
export const cve = (id: string): string => `https://www.cve.org/CVERecord?id=${id}`;
export const VLLM_SECURITY = 'https://docs.vllm.ai/en/stable/usage/security/';
export const VLLM_NIXL = 'https://docs.vllm.ai/en/stable/features/nixl_connector_usage/';
export const LLAMA_README = 'https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md';
export const SGLANG_ARGUMENTS = 'https://docs.sglang.io/docs/advanced_features/server_arguments';

/** What a rule still has to give: the rest is in its meta. */
export type Seen = Partial<Observed>;

// --- what is not known ---

export function unknownVersion(node: NodeFacts): RuleOutcome {
  if (node.endpoint?.answered === true)
    return notChecked('its version is not known: nothing that it answered tells it');
  return notChecked(`its version is not known; ${askCommand(node)} would tell it`);
}

export function unknownFlag(node: NodeFacts, name: string): RuleOutcome {
  // Only SGLang shows its flags to who asks.
  const ask = node.engine === 'sglang' && node.endpoint?.answered !== true ? `, or ${askCommand(node)},` : '';
  return notChecked(`\`--${name}\` is not known; its whole command line${ask} would tell it`);
}

export function unknownVariable(name: string): RuleOutcome {
  return notChecked(
    `\`${name}\` is not known; the whole environment (\`/proc/PID/environ\`, the pod's spec) would tell it`,
  );
}

export function unknownReach(port: number): RuleOutcome {
  return notChecked(`who can reach port ${port} is not known; its manifests (Service, NetworkPolicy) would tell it`);
}

/** Null for one half of a prefill/decode pair. */
export function unlessPaired(node: NodeFacts): RuleOutcome | null {
  if (isPaired(node)) return null;
  return node.role === 'unknown'
    ? notChecked(`whether it is one half of a prefill/decode pair is not known; ${askCommand(node)} would tell it`)
    : notApplicable('it is no half of a prefill/decode pair');
}

// --- flags and variables ---

/** A switch that should be off. */
export function unwantedSwitch(node: NodeFacts, name: string, seen: Seen = {}): RuleOutcome {
  const said = switchOf(node, name, false);
  if (said === null) return unknownFlag(node, name);
  if (!said.value) return passed(`\`--${name}\` is off`);
  return failed({ at: said.source, observed: `\`--${name}\` is on`, wanted: `without \`--${name}\``, ...seen });
}

/** A flag that should name nothing. `fallback` is what it is when not given. */
export function unwantedValue(
  node: NodeFacts,
  name: string,
  isBad: (value: string) => boolean,
  seen: (value: string) => Seen & { readonly wanted: string },
  fallback = '',
): RuleOutcome {
  const said = flagValue(node, name, fallback);
  if (said === null) return unknownFlag(node, name);
  if (!isBad(said.value)) return passed(`\`--${name}\` is ${said.value === '' ? 'not set' : `\`${said.value}\``}`);
  return failed({ at: said.source, observed: `\`--${name} ${said.value}\``, ...seen(said.value) });
}

/** Neither unset, nor zero, nor false. */
export function isActive(value: string): boolean {
  const text = value.trim();
  return text !== '' && !/^(?:0+(?:\.0*)?|false|no|off|n|none)$/i.test(text);
}

/** Variables that should not be active: all of `names` (whole names) and every other one that matches `like`. */
export function unwantedVariables(
  node: NodeFacts,
  names: readonly string[],
  like: RegExp | null,
  seen: Seen = {},
): RuleOutcome {
  const all = [...new Set([...names, ...[...node.variables.keys()].filter((name) => like?.test(name) === true)])];
  const open: string[] = [];
  for (const name of all) {
    const answer = variableOf(node, name);
    if (answer.state === 'unknown' || (answer.state === 'set' && answer.value === null)) open.push(name);
    else if (answer.state === 'set' && answer.value !== null && isActive(answer.value)) {
      const shown = `\`${name}=${answer.value}\``;
      return failed({ at: answer.source, observed: shown, wanted: `\`${name}\` unset`, ...seen });
    }
  }
  return open.length > 0
    ? unknownVariable(open[0]!)
    : passed(`${names.map((name) => `\`${name}\``).join(', ')} not set`);
}

/** Whether a key is set by a flag or a variable. Null: not known. */
export function keySet(node: NodeFacts, flag: string, variable: string | null = null): Sourced<boolean> | null {
  const answer = flagOf(node, flag);
  if (answer.state === 'set' && answer.value !== null && answer.value !== '') {
    return { value: true, source: answer.source };
  }
  if (variable !== null) {
    const said = variableOf(node, variable);
    if (said.state === 'set' && said.value !== '') return { value: true, source: said.source };
    // A running engine resolves the variable into its flag.
    if (said.state === 'unknown' && answer.state !== 'set') return null;
  }
  return answer.state === 'unknown' ? null : { value: false, source: answer.source };
}

// --- logs and metrics ---

/** A sign that should never be there. Its absence proves nothing: a log shows only its own time. */
export function seenInLog(
  node: NodeFacts,
  sign: LogSign,
  seen: (times: number) => Seen & { wanted: string },
): RuleOutcome {
  const found = signOf(node, sign);
  if (found !== null) {
    return failed({
      at: found.source,
      observed: `${found.count} such line${found.count === 1 ? '' : 's'}`,
      ...seen(found.count),
    });
  }
  return notChecked(
    node.logRead ? 'no such line in the log that was read, which shows only its own time' : 'no log was read',
  );
}

/** The first sample above zero, the sum of all, and whether there were any. */
export function counterOf(
  node: NodeFacts,
  names: readonly string[],
  labels: Readonly<Record<string, string>> = {},
): { readonly samples: readonly MetricSample[]; readonly above: MetricSample | null; readonly sum: number } {
  const samples = names.flatMap((name) => samplesOf(node, name, labels));
  return {
    samples,
    above: samples.find(({ value }) => value > 0) ?? null,
    sum: samples.reduce((sum, { value }) => sum + Math.max(value, 0), 0),
  };
}

/** A counter that should stand at zero. */
export function unwantedCount(
  node: NodeFacts,
  names: readonly string[],
  labels: Readonly<Record<string, string>>,
  seen: (sum: number) => Seen & { readonly wanted: string },
): RuleOutcome {
  const { samples, above, sum } = counterOf(node, names, labels);
  if (above !== null) return failed({ at: above.source, observed: `\`${names[0]}\` is ${sum}`, ...seen(sum) });
  if (samples.length > 0) return passed(`\`${names[0]}\` is 0`);
  return notChecked(node.metricsRead ? `\`${names[0]}\` is not among its metrics` : 'its metrics were not read');
}

// --- who can reach it ---

/** Where each listens when nothing is said; null: nothing is known of it. */
const DEFAULTS: Readonly<Record<string, readonly [host: string, port: number]>> = {
  sglang: ['127.0.0.1', 30000],
  vllm: ['0.0.0.0', 8000],
  llamacpp: ['127.0.0.1', 8080],
  'sglang-router': ['0.0.0.0', 30000],
  'sglang-mini-lb': ['0.0.0.0', 30000],
  'vllm-router': ['0.0.0.0', 30000],
  'llmd-sidecar': ['0.0.0.0', 8000],
};

export function apiPort(node: NodeFacts): number {
  const said = best(node.listens)?.value.port ?? Number(flagValue(node, 'port', '')?.value || Number.NaN);
  return Number.isInteger(said) ? said : (DEFAULTS[node.engine ?? '']?.[1] ?? 30000);
}

/** Null for what serves its API on a port of its own. */
export function unlessServing(node: NodeFacts): RuleOutcome | null {
  return flagOf(node, WORKER_FLAG).state === 'set'
    ? notApplicable('a Dynamo worker has no API port of its own: its frontend sends the work')
    : null;
}

/** The address that it binds; null: not known. */
export function hostOf(node: NodeFacts): Sourced<string> | null {
  const said = best(node.listens);
  if (said !== null) return { value: said.value.host, source: said.source };
  const fallback = DEFAULTS[node.engine ?? '']?.[0];
  return fallback === undefined ? null : flagValue(node, 'host', fallback);
}

/** Who can reach `port`, when the node binds it where it binds its API. */
export function reachLikeApi(node: NodeFacts, port: number): ReachFact {
  const host = hostOf(node);
  if (host !== null && isLoopbackHost(host.value)) {
    return { reach: 'loopback', source: host.source, why: `it listens on ${host.value}` };
  }
  return reachOf(node, port);
}

export function apiReach(node: NodeFacts): ReachFact {
  return reachLikeApi(node, apiPort(node));
}

export function isShut(reach: Reach): boolean {
  return reach === 'loopback' || reach === 'restricted';
}

/** A port that tenants must not reach. */
export function unwantedReach(
  what: string,
  port: number,
  found: ReachFact,
  severities: { readonly outside: Severity; readonly cluster: Severity },
): RuleOutcome {
  const { reach, why, source } = found;
  if (reach === 'unknown') return unknownReach(port);
  if (reach === 'outside' || reach === 'cluster') {
    return failed({
      severity: severities[reach],
      at: source,
      observed: `${what} (port ${port}): ${why}`,
      wanted: `port ${port} reachable by its own peers only`,
    });
  }
  return passed(`${what} (port ${port}): ${why}`);
}

// --- vLLM's transfer configuration ---

export function transferOf(node: NodeFacts): Sourced<KvTransferConfig> | null {
  return best(node.transferConfigs);
}

/** The outcome for a node without a transfer configuration: it has none, or nobody said. */
export function noTransfer(node: NodeFacts): RuleOutcome {
  return flagOf(node, 'kv-transfer-config').state === 'default'
    ? notApplicable('it transfers no KV')
    : notChecked('`--kv-transfer-config` is not known; its whole command line would tell it');
}

export function connectorsOf(config: KvTransferConfig): readonly string[] {
  return [config.connector, ...config.inner];
}

export function hasConnector(config: KvTransferConfig, pattern: RegExp): boolean {
  return connectorsOf(config).some((name) => pattern.test(name));
}

/** On and true, for text that may be missing. */
export function isOn(text: string | undefined): boolean {
  return text !== undefined && isTrue(text);
}

/** Whether the node answered this route without any key, when it was asked live. */
export function isRouteOpen(node: NodeFacts, path: string): boolean {
  return node.endpoint?.routes.some((route) => route.path === path && route.statusOpen === 200) ?? false;
}

/** A route that was asked, live, as a source. */
export function routeSource(node: NodeFacts, path: string): { readonly kind: 'answer'; readonly name: string } {
  return { kind: 'answer', name: `${node.endpoint?.origin ?? ''}${path}` };
}
