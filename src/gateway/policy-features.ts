import { CodedError } from '../base/errors.js';
import { shown, truncate } from '../base/text.js';
import type { UpstreamFeature } from '../upstream/upstream.js';
import type { Route } from '../wire/openai.js';
import {
  LOGIT_BIASES_MAX,
  PARAM_CHARACTERS_MAX,
  TOOL_DESCRIPTION_CHARACTERS_MAX,
  TOOL_NAME_CHARACTERS_MAX,
  TOOLS_MAX,
  TOP_LOGPROBS_MAX,
} from './bounds.js';

/**
 * What a request may ask for beyond plain text, by the features of the engines that serve its model. Everything is checked by type and
 * bound, names by an allow-list; what passes goes to the engine as it came. Schemas are the tenant's own data: in them every name passes.
 */
interface FeatureField {
  readonly feature: UpstreamFeature;
  /** Throws CodedError `invalid_request` with the path of what was wrong. */
  readonly check: (value: unknown, name: string) => void;
}

const between = (least: number, most: number): FeatureField['check'] => {
  const words = `a number from ${least} to ${most}`;
  return (value, name) => {
    if (typeof value !== 'number' || !(value >= least && value <= most)) throw wrongAt(name, words);
  };
};

const wholeBetween = (least: number, most: number): FeatureField['check'] => {
  const words = `a whole number from ${least} to ${most}`;
  return (value, name) => {
    if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) throw wrongAt(name, words);
  };
};

const oneOf = (...allowed: readonly string[]): FeatureField['check'] => {
  const words = `one of ${allowed.map((each) => `\`${each}\``).join(', ')}`;
  return (value, name) => {
    if (typeof value !== 'string' || !allowed.includes(value)) throw wrongAt(name, words);
  };
};

const isBoolean: FeatureField['check'] = (value, name) => {
  if (typeof value !== 'boolean') throw wrongAt(name, 'a boolean');
};

const sampling = (check: FeatureField['check']): FeatureField => ({ feature: 'sampling', check });

const COMMON: Readonly<Record<string, FeatureField>> = {
  top_p: sampling(between(0, 1)),
  top_k: sampling(wholeBetween(-1, 1_000_000)),
  min_p: sampling(between(0, 1)),
  frequency_penalty: sampling(between(-2, 2)),
  presence_penalty: sampling(between(-2, 2)),
  repetition_penalty: sampling(between(0.01, 10)),
  logit_bias: sampling(checkLogitBias),
};

const FIELDS: Readonly<Record<Route, ReadonlyMap<string, FeatureField>>> = {
  chat: new Map(
    Object.entries({
      ...COMMON,
      tools: { feature: 'tools', check: checkTools },
      tool_choice: { feature: 'tools', check: checkToolChoice },
      parallel_tool_calls: { feature: 'tools', check: isBoolean },
      response_format: { feature: 'response-format', check: checkResponseFormat },
      logprobs: { feature: 'logprobs', check: isBoolean },
      top_logprobs: { feature: 'logprobs', check: wholeBetween(0, TOP_LOGPROBS_MAX) },
      reasoning_effort: {
        feature: 'reasoning',
        check: oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
      },
    } satisfies Record<string, FeatureField>),
  ),
  completions: new Map(
    Object.entries({
      ...COMMON,
      logprobs: { feature: 'logprobs', check: wholeBetween(0, TOP_LOGPROBS_MAX) },
    } satisfies Record<string, FeatureField>),
  ),
};

/** The field of this name where the features allow it; undefined: it may at most ask for nothing. */
export function featureField(
  route: Route,
  name: string,
  features: ReadonlySet<UpstreamFeature>,
): FeatureField | undefined {
  const field = FIELDS[route].get(name);
  return field !== undefined && features.has(field.feature) ? field : undefined;
}

/** Fields that mean something only together. Gives those that go to the engine. */
export function consistent(params: Record<string, unknown>): Readonly<Record<string, unknown>> {
  if (params.top_logprobs !== undefined && params.top_logprobs !== 0 && params.logprobs !== true)
    throw wrongAt('top_logprobs', 'there only together with `logprobs: true`');
  if (params.logprobs === false) delete params.logprobs;
  if (params.logprobs === undefined) delete params.top_logprobs;
  const { tools, tool_choice: choice } = params;
  if (Array.isArray(tools) && tools.length > 0) return params;
  if (choice !== undefined && choice !== 'none' && choice !== 'auto')
    throw wrongAt('tool_choice', 'there only together with `tools`');
  for (const name of ['tools', 'tool_choice', 'parallel_tool_calls']) delete params[name];
  return params;
}

function checkLogitBias(value: unknown, name: string): void {
  const biases = Object.entries(recordAt(value, name));
  if (biases.length > LOGIT_BIASES_MAX) throw wrongAt(name, `an object of at most ${LOGIT_BIASES_MAX} tokens`);
  for (const [token, bias] of biases) {
    if (!/^\d{1,9}$/.test(token)) throw wrongAt(name, 'an object whose names are token ids');
    between(-100, 100)(bias, `${name}.${token}`);
  }
}

function checkTools(value: unknown, name: string): void {
  if (!Array.isArray(value) || value.length > TOOLS_MAX) throw wrongAt(name, `an array of at most ${TOOLS_MAX} tools`);
  value.forEach((tool: unknown, at) => {
    const path = `${name}[${at}]`;
    const record = recordAt(tool, path, ['type', 'function']);
    if (record.type !== 'function') throw wrongAt(`${path}.type`, '`function`, which is all that is served');
    checkNamed(record.function, `${path}.function`, 'parameters');
  });
}

/** A function or a schema: its name, what it is for, and a JSON schema of the tenant's own. */
function checkNamed(value: unknown, path: string, schema: 'parameters' | 'schema'): void {
  const record = recordAt(value, path, ['name', 'description', 'strict', schema]);
  if (!isName(record.name))
    throw wrongAt(`${path}.name`, `a name of 1 to ${TOOL_NAME_CHARACTERS_MAX} letters, digits, \`_\`, \`-\` and \`.\``);
  const { description, strict } = record;
  if (isGiven(description) && (typeof description !== 'string' || description.length > TOOL_DESCRIPTION_CHARACTERS_MAX))
    throw wrongAt(`${path}.description`, `a string of at most ${TOOL_DESCRIPTION_CHARACTERS_MAX} characters`);
  if (isGiven(strict)) isBoolean(strict, `${path}.strict`);
  if (isGiven(record[schema])) recordAt(record[schema], `${path}.${schema}`);
}

function checkToolChoice(value: unknown, name: string): void {
  if (value === 'none' || value === 'auto' || value === 'required') return;
  if (typeof value === 'string') throw wrongAt(name, 'one of `none`, `auto`, `required`, or the function to call');
  const record = recordAt(value, name, ['type', 'function']);
  if (record.type !== 'function') throw wrongAt(`${name}.type`, '`function`, which is all that is served');
  const named = recordAt(record.function, `${name}.function`, ['name']);
  if (!isName(named.name)) throw wrongAt(`${name}.function.name`, 'the name of a function');
}

function checkResponseFormat(value: unknown, name: string): void {
  const record = recordAt(value, name, ['type', 'json_schema']);
  oneOf('text', 'json_object', 'json_schema')(record.type, `${name}.type`);
  const isSchema = record.type === 'json_schema';
  if (isSchema) checkNamed(record.json_schema, `${name}.json_schema`, 'schema');
  else if (isGiven(record.json_schema)) throw wrongAt(`${name}.json_schema`, 'there only with the type `json_schema`');
}

export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= TOOL_NAME_CHARACTERS_MAX && /^[\w.-]+$/.test(value);
}

export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** An object; with `known`, one that has no other names. */
export function recordAt(value: unknown, path: string, known?: readonly string[]): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrongAt(path, 'an object');
  if (known !== undefined)
    for (const name of Object.keys(value)) if (!known.includes(name)) throw unknownAt(path, name);
  return value as Record<string, unknown>;
}

/** Says what was expected, and nothing of what came: a prompt may stand in any field. */
export function wrongAt(path: string, expected: string): CodedError {
  const param = truncate(path, PARAM_CHARACTERS_MAX);
  return new CodedError('invalid_request', `Expected \`${param}\` to be ${expected}.`, { param });
}

export function unknownAt(path: string, name: string): CodedError {
  const param = truncate(`${path}.${name}`, PARAM_CHARACTERS_MAX);
  return new CodedError('invalid_request', `Expected only known fields, got ${shown(param)}; leave it out.`, { param });
}
