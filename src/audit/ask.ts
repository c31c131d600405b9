/** What rules ask of a node. Every answer says where it was read, or that nobody said. */
import type { EngineName, LogSign } from '../upstream/reading.js';
import { compareVersions, isAtLeastVersion, parseVersion } from '../upstream/version.js';
import type { FlagFact, MetricSample, NodeFacts, PoolFact, Said, SignSeen, Source, Sourced } from './facts.js';

/** The best of what was said. */
export function best<T>(said: Said<T>): Sourced<T> | null {
  return said[0] ?? null;
}

/**
 * The pool that bounds one request: the smallest rank of the best source, since a request lives on one rank and no router
 * says which. Null: not known.
 */
export function poolOf(node: NodeFacts): Sourced<PoolFact> | null {
  const first = node.pool[0];
  if (first === undefined) return null;
  let smallest = first;
  for (const one of node.pool) {
    if (sameArtifact(one.source, first.source) && one.value.tokens < smallest.value.tokens) smallest = one;
  }
  return smallest;
}

export function sameArtifact(a: Source, b: Source): boolean {
  return a.kind === b.kind && a.name === b.name;
}

/** `set`: named, or resolved by the running engine · `default`: every flag was read and this one was not among them. */
export type FlagAnswer =
  | { readonly state: 'set'; readonly value: string | null; readonly source: Source }
  | { readonly state: 'default'; readonly source: Source }
  | { readonly state: 'unknown' };

/** `name` canonical, without dashes in front. What a running engine resolved comes before what somebody wrote. */
export function flagOf(node: NodeFacts, name: string): FlagAnswer {
  const said: Said<FlagFact> = node.flags.get(name) ?? [];
  const chosen = said.find(({ value }) => value.form === 'resolved') ?? said[0];
  // Written as `$VAR`: it is set, to what only the running engine knows.
  if (chosen !== undefined && chosen.value.form === 'given' && chosen.value.value === null) return { state: 'unknown' };
  if (chosen !== undefined) return { state: 'set', value: chosen.value.value, source: chosen.source };
  const whole = node.flagsComplete[0];
  return whole === undefined ? { state: 'unknown' } : { state: 'default', source: whole };
}

/** The value, or `fallback` where it has its default; null: not known. `source` is where that was seen. */
export function flagValue(node: NodeFacts, name: string, fallback: string): Sourced<string> | null {
  const answer = flagOf(node, name);
  if (answer.state === 'unknown') return null;
  return { value: answer.state === 'set' ? (answer.value ?? fallback) : fallback, source: answer.source };
}

/** A switch: true, false, or null when it is not known. */
export function switchOf(node: NodeFacts, name: string, fallback: boolean): Sourced<boolean> | null {
  const said = flagValue(node, name, String(fallback));
  return said === null ? null : { value: isTrue(said.value), source: said.source };
}

export function isTrue(text: string): boolean {
  return /^(?:1|true|yes|on|y)$/i.test(text.trim());
}

export type VariableAnswer =
  | {
      readonly state: 'set' /** Null: to what is not known here. */;
      readonly value: string | null;
      readonly source: Source;
    }
  | { readonly state: 'unset'; readonly source: Source }
  | { readonly state: 'unknown' };

export function variableOf(node: NodeFacts, name: string): VariableAnswer {
  const said = node.variables.get(name)?.[0];
  if (said !== undefined) return { state: 'set', value: said.value, source: said.source };
  const whole = node.variablesComplete.find(({ value }) => name.startsWith(value));
  return whole === undefined ? { state: 'unknown' } : { state: 'unset', source: whole.source };
}

export function signOf(node: NodeFacts, sign: LogSign): SignSeen | null {
  return node.signs.find((one) => one.sign === sign) ?? null;
}

/** Samples of that name (a `ray_` in front is no difference) whose labels include `labels`. */
export function samplesOf(
  node: NodeFacts,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): MetricSample[] {
  return node.samples.filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
}

/** True, false, or null when the version is not known or is of another kind. */
export function atLeast(node: NodeFacts, floor: string): boolean | null {
  return isAtLeastVersion(node.version, floor);
}

/** Before `end`; a nightly of `end` counts as before it. */
export function before(node: NodeFacts, end: string): boolean | null {
  const wanted = parseVersion(end);
  if (node.version === null || wanted === null) return null;
  const order = compareVersions(node.version, wanted);
  return order === null ? null : order < 0;
}

/** Engines proper: what holds a KV pool. */
const HOLDERS: readonly EngineName[] = ['sglang', 'vllm', 'llamacpp', 'cofferdam', 'tensorrt-llm'];

export function holdsPool(node: NodeFacts): boolean {
  return node.engine !== null && HOLDERS.includes(node.engine);
}

export function isPaired(node: NodeFacts): boolean {
  return node.role === 'prefill' || node.role === 'decode';
}
