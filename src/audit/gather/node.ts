/** From the artifacts of one node to its facts, best source first. */
import type { Fact, FactKind } from '../../upstream/reading.js';
import { parseVersion } from '../../upstream/version.js';
import {
  type Endpoint,
  type FlagFact,
  type MetricSample,
  type NodeFacts,
  type PoolFact,
  type Said,
  type SignSeen,
  SOURCE_KINDS,
  type SlotsFact,
  type Source,
  type Sourced,
} from '../facts.js';
import { acceptLimits } from './limits.js';
import { Group } from './match.js';
import type { Piece } from './piece.js';

interface Stated {
  readonly fact: Fact;
  readonly source: Source;
}

/** A fact of one kind. */
type Of<K extends FactKind> = Extract<Fact, { kind: K }>;

export function nodeOf(group: Group, name: string): NodeFacts {
  const pieces = inOrder(group.pieces);
  const stated = new StatedFacts(pieces);
  const whole = new Group();
  for (const piece of pieces) whole.add(piece);
  const versions = stated.values('version', (fact) => fact.text);
  const node: NodeFacts = {
    name,
    engine: whole.engine,
    role: whole.role,
    sources: pieces.map(({ source }) => source),
    version: versions.map(({ value }) => parseVersion(value)).find((version) => version !== null) ?? null,
    versions,
    roles: stated.lasts('role', (fact) => fact.role),
    models: stated.values('model', (fact) => fact.name),
    architectures: stated.values('architecture', (fact) => fact.name),
    listens: stated.values('listens', ({ host, port }) => ({ host, port })),
    advertised: stated.lasts('advertised', (fact) => fact.tokens),
    pool: stated.pools('pool'),
    poolCap: stated.values('pool-cap', (fact) => fact.tokens),
    poolSwa: stated.pools('pool-swa'),
    poolUnsaid: stated.values('pool-unsaid', (fact) => fact.why),
    acceptLimit: [],
    pageTokens: stated.lasts('page', (fact) => fact.tokens),
    slots: stated.values('slots', ({ count, contextEach, unified }): SlotsFact => ({ count, contextEach, unified })),
    contextTrained: stated.values('context-trained', (fact) => fact.tokens),
    concurrency: stated.values('concurrency', (fact) => fact.times),
    flags: stated.flags(),
    flagsComplete: stated.values('flags-complete', () => true).map(({ source }) => source),
    variables: stated.variables(),
    variablesComplete: stated.values('variables-complete', (fact) => fact.prefix),
    signs: stated.signs(),
    logRead: pieces.some(({ source }) => source.kind === 'log'),
    samples: stated.samples(),
    metricsRead: pieces.some(({ source }) => source.kind === 'metrics'),
    keysShown: stated.values('key-shown', (fact) => fact.field),
    transferConfigs: stated.values('transfer-config', (fact) => fact.config),
    routes: new Set(stated.values('route', (fact) => fact.path).map(({ value }) => value)),
    endpoint: endpointOf(pieces),
    exposure: pieces.find(({ exposure }) => exposure !== undefined)?.exposure ?? null,
  };
  const ranked = { ...node, poolUnsaid: [...node.poolUnsaid, ...missingRanks(node)] };
  return {
    ...ranked,
    acceptLimit: acceptLimits(
      ranked,
      stated.lasts('refused-from', (fact) => fact.tokens),
    ),
  };
}

function inOrder(pieces: readonly Piece[]): Piece[] {
  const rank = (piece: Piece): number => SOURCE_KINDS.indexOf(piece.source.kind);
  return [...pieces].sort((a, b) => rank(a) - rank(b));
}

function endpointOf(pieces: readonly Piece[]): Endpoint | null {
  const all = pieces.flatMap(({ endpoint }) => (endpoint === undefined ? [] : [endpoint]));
  return all.find(({ answered }) => answered) ?? all[0] ?? null;
}

/** With data parallelism each rank has a pool; one that did not speak may be the smallest. */
function missingRanks(node: NodeFacts): Sourced<string>[] {
  const first = node.pool[0];
  const flag = (node.flags.get('dp-size') ?? node.flags.get('data-parallel-size'))?.[0];
  const wanted = Number(flag?.value.value ?? 1);
  if (first === undefined || !Number.isInteger(wanted) || wanted <= 1) return [];
  const ranks = new Set(
    node.pool
      .filter(({ source }) => source.kind === first.source.kind && source.name === first.source.name)
      .map(({ value }) => value.rank),
  );
  if (ranks.size >= wanted) return [];
  return [{ value: `${ranks.size} of ${wanted} ranks told their pool`, source: first.source }];
}

/** Times that one sign of one node is looked up for its place; beyond, it is only counted. */
class StatedFacts {
  readonly #all: readonly Stated[];

  constructor(pieces: readonly Piece[]) {
    this.#all = pieces.flatMap(({ reading, source }) =>
      reading.facts.map((fact): Stated => {
        const line = fact.line ?? source.line;
        return { fact, source: line === undefined ? source : { ...source, line } };
      }),
    );
  }

  *#of<K extends FactKind>(kind: K): Generator<{ readonly fact: Of<K>; readonly source: Source }> {
    for (const { fact, source } of this.#all) {
      if (fact.kind === kind) yield { fact: fact as Of<K>, source };
    }
  }

  /** Different values, best source first. */
  values<K extends FactKind, T>(kind: K, value: (fact: Of<K>) => T): Said<T> {
    const said = new Map<string, Sourced<T>>();
    for (const { fact, source } of this.#of(kind)) {
      const one = value(fact);
      const key = JSON.stringify([one, source.kind, source.name]);
      if (!said.has(key)) said.set(key, { value: one, source });
    }
    return [...said.values()];
  }

  /** One value of each artifact, its last: a start tells a figure again when it changes. */
  lasts<K extends FactKind, T>(kind: K, value: (fact: Of<K>) => T): Said<T> {
    const said = new Map<string, Sourced<T>>();
    for (const { fact, source } of this.#of(kind)) {
      said.set(JSON.stringify([source.kind, source.name]), { value: value(fact), source });
    }
    return [...said.values()];
  }

  /** For each artifact and rank the smallest: the ranks of tensor and pipeline parallelism share one request. */
  pools(kind: 'pool' | 'pool-swa'): Said<PoolFact> {
    const said = new Map<string, Sourced<PoolFact>>();
    for (const { fact, source } of this.#of(kind)) {
      const estimate = fact.kind === 'pool' && fact.estimate;
      const key = JSON.stringify([source.kind, source.name, fact.rank]);
      const known = said.get(key);
      const smaller =
        known === undefined ||
        (known.value.estimate && !estimate) ||
        (known.value.estimate === estimate && fact.tokens < known.value.tokens);
      if (smaller) said.set(key, { value: { tokens: fact.tokens, rank: fact.rank, estimate }, source });
    }
    return [...said.values()];
  }

  flags(): Map<string, Said<FlagFact>> {
    const flags = new Map<string, Sourced<FlagFact>[]>();
    for (const { fact, source } of this.#of('flag')) {
      const said = flags.get(fact.name) ?? [];
      const known = said.findIndex(({ source: other }) => other.kind === source.kind && other.name === source.name);
      const one = { value: { value: fact.value, form: fact.form }, source };
      if (known < 0) said.push(one);
      else said[known] = one;
      flags.set(fact.name, said);
    }
    return flags;
  }

  variables(): Map<string, Said<string | null>> {
    const variables = new Map<string, Sourced<string | null>[]>();
    for (const { fact, source } of this.#of('variable')) {
      variables.set(fact.name, [...(variables.get(fact.name) ?? []), { value: fact.value, source }]);
    }
    return variables;
  }

  signs(): SignSeen[] {
    const seen = new Map<string, SignSeen>();
    for (const { fact, source } of this.#of('sign')) {
      const known = seen.get(fact.sign);
      seen.set(fact.sign, { sign: fact.sign, count: (known?.count ?? 0) + 1, source: known?.source ?? source });
    }
    return [...seen.values()];
  }

  samples(): MetricSample[] {
    return [...this.#of('sample')].map(({ fact, source }) => ({
      name: fact.name,
      labels: fact.labels,
      value: fact.value,
      source,
    }));
  }
}
