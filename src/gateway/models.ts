/** The models of several engines, as tenants are told of them. */
import { CodedError } from '../base/errors.js';
import { effectiveLimit } from '../handoff/admission.js';
import type { UpstreamFeature } from '../upstream/upstream.js';
import { type ModelRow, modelsJson, oneModelJson } from '../wire/index.js';
import type { Engine } from './engine.js';

/** The names of all of them, each once. */
export function modelsOf(engines: readonly Engine[]): readonly string[] {
  return [...new Set(engines.flatMap(({ upstream }) => upstream.describe().models))];
}

/** What `/v1/models` or `/v1/models/NAME` answers: JSON. `startedS`: seconds since 1970. Throws `not_found`. */
export function modelsAnswer(path: string, engines: readonly Engine[], startedS: number): string {
  const rows: ModelRow[] = modelsOf(engines).map((id) => ({
    id,
    createdS: startedS,
    maxModelLen: advertisedLimit(engines, id),
  }));
  if (path === '/v1/models') return modelsJson(rows);
  const row = rows.find((each) => each.id === decoded(path.slice('/v1/models/'.length)));
  if (row === undefined) throw new CodedError('not_found', 'Expected the name of a model that is served here.');
  return oneModelJson(row);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * The largest prompt that every engine in service of the model takes: what a tenant may rely on wherever its requests go. Where none
 * is in service, of all that have it. Null: no engine says.
 */
function advertisedLimit(engines: readonly Engine[], model: string): number | null {
  const having = engines.filter((engine) => engine.serves(model));
  const serving = having.filter((engine) => engine.isServing);
  const limits = (serving.length > 0 ? serving : having).flatMap(
    ({ upstream }) => effectiveLimit(upstream.capacity())?.tokens ?? [],
  );
  return limits.length === 0 ? null : Math.min(...limits);
}

/** What can be asked of every one of them. */
export function commonFeatures(engines: readonly Engine[]): ReadonlySet<UpstreamFeature> {
  const [first, ...others] = engines.map(({ upstream }) => upstream.describe().features ?? new Set<UpstreamFeature>());
  return new Set([...(first ?? [])].filter((feature) => others.every((each) => each.has(feature))));
}
