/** The lines of a record, read again. What stands in them is untrusted: every field is looked at, nothing unknown is carried along. */
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { OUTCOMES } from './answer.js';
import {
  type EndRecord,
  JOURNAL_VERSION,
  type JournalHeader,
  type JournalRecord,
  type KnowledgeRecord,
  type PlanRecord,
  type RequestRecord,
} from './journal.js';
import { EXPERIMENT_VERDICTS, type ExperimentResult, type Hit, type Method } from './result.js';

/** Entries of one list, and characters of one text of a record. */
const ITEMS_MAX = 100_000;
const TEXT_CHARACTERS_MAX = 4096;

type Fields = Readonly<Record<string, unknown>>;
type Read<T> = (value: unknown, path: string) => T;

function wrong(path: string, wanted: string, value: unknown): CodedError {
  return new CodedError('usage', `expected \`${path}\` to be ${wanted}, got ${shown(value)}`);
}

const text: Read<string> = (value, path) => {
  if (typeof value !== 'string' || value.length > TEXT_CHARACTERS_MAX)
    throw wrong(path, `a text of at most ${TEXT_CHARACTERS_MAX} characters`, value);
  return value;
};
const number: Read<number> = (value, path) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw wrong(path, 'a number', value);
  return value;
};
const flag: Read<boolean> = (value, path) => {
  if (typeof value !== 'boolean') throw wrong(path, '`true` or `false`', value);
  return value;
};
const orNull =
  <T>(read: Read<T>): Read<T | null> =>
  (value, path) =>
    value === null ? null : read(value, path);
const listOf =
  <T>(read: Read<T>): Read<T[]> =>
  (value, path) => {
    if (!Array.isArray(value) || value.length > ITEMS_MAX) throw wrong(path, `a list of at most ${ITEMS_MAX}`, value);
    return value.map((item, index) => read(item, `${path}[${index}]`));
  };

function oneOf<T extends string>(choices: readonly T[]): Read<T> {
  return (value, path) => {
    const found = choices.find((choice) => choice === value);
    if (found === undefined) throw wrong(path, `one of ${choices.join(', ')}`, value);
    return found;
  };
}

const fields: Read<Fields> = (value, path) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(path, 'an object', value);
  return value as Fields;
};

const readMethod: Read<Method> = (value, path) => {
  const { does, control, tells, limits } = fields(value, path);
  return {
    does: text(does, `${path}.does`),
    control: text(control, `${path}.control`),
    tells: text(tells, `${path}.tells`),
    limits: text(limits, `${path}.limits`),
  };
};

function readHeader(value: Fields): JournalHeader {
  if (value.version !== JOURNAL_VERSION) throw wrong('version', String(JOURNAL_VERSION), value.version);
  return {
    record: 'probe',
    version: JOURNAL_VERSION,
    tool: text(value.tool, 'tool'),
    runId: text(value.runId, 'runId'),
    startedAt: text(value.startedAt, 'startedAt'),
    endpoint: text(value.endpoint, 'endpoint'),
    model: text(value.model, 'model'),
    route: text(value.route, 'route'),
    tenants: listOf(text)(value.tenants, 'tenants'),
    seed: number(value.seed, 'seed'),
    experiments: listOf(text)(value.experiments, 'experiments'),
    required: listOf(text)(value.required, 'required'),
    bound: number(value.bound, 'bound'),
  };
}

function readKnowledge(value: Fields): KnowledgeRecord {
  return {
    record: 'knowledge',
    advertised: orNull(number)(value.advertised, 'advertised'),
    advertisedFrom: orNull(text)(value.advertisedFrom, 'advertisedFrom'),
    pool: orNull(number)(value.pool, 'pool'),
    acceptLimit: orNull(number)(value.acceptLimit, 'acceptLimit'),
    engine: orNull(text)(value.engine, 'engine'),
    engineVersion: orNull(text)(value.engineVersion, 'engineVersion'),
    nodes: listOf(text)(value.nodes, 'nodes'),
    counts: flag(value.counts, 'counts'),
    streams: flag(value.streams, 'streams'),
    smallMs: orNull(number)(value.smallMs, 'smallMs'),
  };
}

function readPlan(value: Fields): PlanRecord {
  const one: Read<PlanRecord['experiments'][number]> = (item, path) => {
    const { name, required, unfit, plan, method } = fields(item, path);
    const { requests, tokens, seconds } = fields(plan, `${path}.plan`);
    return {
      name: text(name, `${path}.name`),
      required: flag(required, `${path}.required`),
      unfit: orNull(text)(unfit, `${path}.unfit`),
      plan: {
        requests: number(requests, `${path}.plan.requests`),
        tokens: number(tokens, `${path}.plan.tokens`),
        seconds: orNull(number)(seconds, `${path}.plan.seconds`),
      },
      method: readMethod(method, `${path}.method`),
    };
  };
  return { record: 'plan', experiments: listOf(one)(value.experiments, 'experiments') };
}

/** What reports are made of; the rest of a request is for whoever reads the file. */
function readRequest(value: Fields): RequestRecord {
  const usage = orNull(fields)(value.usage, 'usage');
  const unread = { characters: 0, sha256: '' };
  return {
    record: 'request',
    experiment: text(value.experiment, 'experiment'),
    id: text(value.id, 'id'),
    tenant: text(value.tenant, 'tenant'),
    sentMs: number(value.sentMs, 'sentMs'),
    endMs: number(value.endMs, 'endMs'),
    prompt: unread,
    maxTokens: number(value.maxTokens, 'maxTokens'),
    stream: flag(value.stream, 'stream'),
    outcome: oneOf(OUTCOMES)(value.outcome, 'outcome'),
    status: orNull(number)(value.status, 'status'),
    firstByteMs: orNull(number)(value.firstByteMs, 'firstByteMs'),
    firstTextMs: orNull(number)(value.firstTextMs, 'firstTextMs'),
    answer: unread,
    usage:
      usage === null
        ? null
        : {
            promptTokens: number(usage.promptTokens, 'usage.promptTokens'),
            completionTokens: number(usage.completionTokens, 'usage.completionTokens'),
            cachedTokens: orNull(number)(usage.cachedTokens, 'usage.cachedTokens'),
          },
    finishReason: orNull(text)(value.finishReason, 'finishReason'),
    error: null,
  };
}

function readHit(value: Fields): Hit {
  return {
    experiment: text(value.experiment, 'experiment'),
    request: text(value.request, 'request'),
    tenant: text(value.tenant, 'tenant'),
    owner: orNull(text)(value.owner, 'owner'),
    marker: orNull(text)(value.marker, 'marker'),
    planted: orNull(text)(value.planted, 'planted'),
    place: text(value.place, 'place'),
    offset: number(value.offset, 'offset'),
    length: number(value.length, 'length'),
    markerOffset: number(value.markerOffset, 'markerOffset'),
    sentMs: number(value.sentMs, 'sentMs'),
    endMs: number(value.endMs, 'endMs'),
    promptCharacters: number(value.promptCharacters, 'promptCharacters'),
    promptTokens: orNull(number)(value.promptTokens, 'promptTokens'),
    overlapMs: orNull(number)(value.overlapMs, 'overlapMs'),
    leftBefore: listOf(text)(value.leftBefore, 'leftBefore'),
  };
}

function readResult(value: Fields): ExperimentResult {
  const figures = value.figures === undefined ? undefined : fields(value.figures, 'figures');
  const figure: Read<number | number[]> = (item, path) =>
    Array.isArray(item) ? listOf(number)(item, path) : number(item, path);
  return {
    name: text(value.name, 'name'),
    verdict: oneOf(EXPERIMENT_VERDICTS)(value.verdict, 'verdict'),
    sent: number(value.sent, 'sent'),
    hits: number(value.hits, 'hits'),
    bound: orNull(number)(value.bound, 'bound'),
    control: text(value.control, 'control'),
    evidence: listOf(text)(value.evidence, 'evidence'),
    ...(figures === undefined
      ? {}
      : {
          figures: Object.fromEntries(
            Object.entries(figures).map(([name, item]) => [text(name, 'figures'), figure(item, `figures.${name}`)]),
          ),
        }),
    ...(value.unfinished === true ? { unfinished: true } : {}),
  };
}

function readEnd(value: Fields): EndRecord {
  return { record: 'end', why: orNull(text)(value.why, 'why') };
}

/** One record of a file; null for a kind that this version does not know. Throws CodedError `usage` that begins in the middle of a sentence. */
export function readRecord(parsed: unknown): JournalRecord | null {
  const value = fields(parsed, 'the line');
  switch (value.record) {
    case 'probe':
      return readHeader(value);
    case 'knowledge':
      return readKnowledge(value);
    case 'plan':
      return readPlan(value);
    case 'request':
      return readRequest(value);
    case 'hit':
      return { record: 'hit', ...readHit(value) };
    case 'experiment':
      return { record: 'experiment', ...readResult(value) };
    case 'end':
      return readEnd(value);
    default:
      return null;
  }
}
