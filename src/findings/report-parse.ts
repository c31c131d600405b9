/** A saved report, read again. What stands in it is untrusted: every field is looked at, nothing unknown is carried along. */
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { type Finding, type FindingPlace, SEVERITIES, type Waiver } from './finding.js';
import {
  CHECK_STATUSES,
  NODE_ROLES,
  type NodeSource,
  REPORT_VERSION,
  type Report,
  type ReportChange,
  type ReportCheck,
  type ReportNode,
  type ReportSkip,
  VERDICTS,
} from './report.js';

/** Characters of a saved report: ten thousand nodes with all their checks fit, a runaway file does not. */
export const REPORT_CHARACTERS_MAX: number = 64 * 1024 ** 2;
/** Levels of brackets; a report has five. */
export const REPORT_DEPTH_MAX = 16;
/** Entries of one list. */
export const REPORT_ITEMS_MAX = 1_000_000;
/** Characters of one text: longer than any rule writes. */
export const REPORT_TEXT_CHARACTERS_MAX = 65_536;

type Read<T> = (value: unknown, path: string) => T;

function wrong(path: string, wanted: string, value: unknown): CodedError {
  return new CodedError('usage', `Expected \`${path}\` of the report to be ${wanted}, got ${shown(value)}`);
}

const text: Read<string> = (value, path) => {
  if (typeof value !== 'string') throw wrong(path, 'a text', value);
  if (value.length > REPORT_TEXT_CHARACTERS_MAX) {
    throw wrong(path, `at most ${REPORT_TEXT_CHARACTERS_MAX} characters`, value.length);
  }
  return value;
};

const flag: Read<boolean> = (value, path) => {
  if (typeof value !== 'boolean') throw wrong(path, '`true` or `false`', value);
  return value;
};

const tokens: Read<number> = (value, path) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw wrong(path, 'a whole number from 0 up', value);
  return value as number;
};

const line: Read<number> = (value, path) => {
  if (!Number.isSafeInteger(value) || (value as number) < 1) throw wrong(path, 'a line, from 1 up', value);
  return value as number;
};

const ratio: Read<number> = (value, path) => {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) throw wrong(path, 'a number from 0 up', value);
  return value;
};

function oneOf<T extends string>(choices: readonly T[]): Read<T> {
  return (value, path) => {
    const found = choices.find((choice) => choice === value);
    if (found === undefined) throw wrong(path, `one of ${choices.join(', ')}`, value);
    return found;
  };
}

function orNull<T>(read: Read<T>): Read<T | null> {
  return (value, path) => (value === null ? null : read(value, path));
}

function listOf<T>(read: Read<T>): Read<T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw wrong(path, 'a list', value);
    if (value.length > REPORT_ITEMS_MAX) throw wrong(path, `at most ${REPORT_ITEMS_MAX} entries`, value.length);
    return value.map((item, index) => read(item, `${path}[${index}]`));
  };
}

/** Reads the fields of one object. */
class Fields {
  readonly #object: object;
  readonly #path: string;

  /** An empty path is the report itself. */
  constructor(value: unknown, path: string) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      if (path !== '') throw wrong(path, 'an object', value);
      throw new CodedError('usage', `Expected a report to be an object, got ${shown(value)}`);
    }
    this.#object = value;
    this.#path = path;
  }

  need<T>(name: string, read: Read<T>): T {
    const value: unknown = Object.hasOwn(this.#object, name) ? Reflect.get(this.#object, name) : undefined;
    return read(value, this.#path === '' ? name : `${this.#path}.${name}`);
  }

  /** `{ name: value }`, or nothing where the field is not there. */
  may<K extends string, T>(name: K, read: Read<T>): { [key in K]?: T } {
    if (!Object.hasOwn(this.#object, name)) return {};
    return { [name]: this.need(name, read) } as { [key in K]?: T };
  }

  /** An empty list where the field is not there. */
  list<T>(name: string, read: Read<T>): T[] {
    return Object.hasOwn(this.#object, name) ? this.need(name, listOf(read)) : [];
  }
}

const place: Read<FindingPlace> = (value, path) => {
  const fields = new Fields(value, path);
  return { node: fields.need('node', text), source: fields.need('source', text), ...fields.may('line', line) };
};

const waiver: Read<Waiver> = (value, path) => {
  const fields = new Fields(value, path);
  return {
    reason: fields.need('reason', text),
    expires: fields.need('expires', text),
    expired: fields.need('expired', flag),
  };
};

const finding: Read<Finding> = (value, path) => {
  const fields = new Fields(value, path);
  return {
    id: fields.need('id', text),
    severity: fields.need('severity', oneOf(SEVERITIES)),
    ...fields.may('subject', text),
    title: fields.need('title', text),
    where: fields.need('where', place),
    observed: fields.need('observed', text),
    wanted: fields.need('wanted', text),
    change: fields.need('change', text),
    references: fields.need('references', listOf(text)),
    certain: fields.need('certain', flag),
    ...fields.may('waiver', waiver),
  };
};

const nodeSource: Read<NodeSource> = (value, path) => {
  const fields = new Fields(value, path);
  return {
    field: fields.need('field', text),
    value: fields.need('value', text),
    source: fields.need('source', text),
    ...fields.may('line', line),
  };
};

const node: Read<ReportNode> = (value, path) => {
  const fields = new Fields(value, path);
  return {
    name: fields.need('name', text),
    engine: fields.need('engine', orNull(text)),
    version: fields.need('version', orNull(text)),
    role: fields.need('role', oneOf(NODE_ROLES)),
    advertised: fields.need('advertised', orNull(tokens)),
    pool: fields.need('pool', orNull(tokens)),
    acceptLimit: fields.need('acceptLimit', orNull(tokens)),
    ratio: fields.need('ratio', orNull(ratio)),
    sources: fields.list('sources', nodeSource),
  };
};

const check: Read<ReportCheck> = (value, path) => {
  const fields = new Fields(value, path);
  return {
    id: fields.need('id', text),
    node: fields.need('node', text),
    status: fields.need('status', oneOf(CHECK_STATUSES)),
    why: fields.need('why', text),
  };
};

const change: Read<ReportChange> = (value, path) => {
  const fields = new Fields(value, path);
  return {
    node: fields.need('node', text),
    field: fields.need('field', text),
    before: fields.need('before', text),
    after: fields.need('after', text),
  };
};

const skip: Read<ReportSkip> = (value, path) => {
  const fields = new Fields(value, path);
  return { source: fields.need('source', text), why: fields.need('why', text) };
};

const tool: Read<Report['tool']> = (value, path) => {
  const fields = new Fields(value, path);
  return { name: fields.need('name', text), version: fields.need('version', text) };
};

const version: Read<typeof REPORT_VERSION> = (value, path) => {
  if (value !== REPORT_VERSION) throw wrong(path, `${REPORT_VERSION}, the version that this Cofferdam reads`, value);
  return REPORT_VERSION;
};

/** Whether brackets nest deeper than `depthMax`. In one pass over the text, before anything is built from it. */
function isDeeperThan(json: string, depthMax: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const char = json[at];
    if (char === '"') {
      for (at++; at < json.length && json[at] !== '"'; at++) if (json[at] === '\\') at++;
    } else if (char === '{' || char === '[') {
      if (++depth > depthMax) return true;
    } else if (char === '}' || char === ']') depth--;
  }
  return false;
}

function parseJson(json: string): unknown {
  if (json.length > REPORT_CHARACTERS_MAX) {
    const wanted = `Expected a report of at most ${REPORT_CHARACTERS_MAX} characters`;
    throw new CodedError('usage', `${wanted}, got ${json.length}`);
  }
  if (isDeeperThan(json, REPORT_DEPTH_MAX)) {
    throw new CodedError('usage', `Expected a report nested at most ${REPORT_DEPTH_MAX} deep, got one nested deeper`);
  }
  try {
    return JSON.parse(json);
  } catch {
    // The parser's own words would quote what stands in the file.
    throw new CodedError('usage', 'Expected a report as JSON, as `--output json` writes it, got something else');
  }
}

/** A report that `--output json` wrote. Throws CodedError `usage` that names the field. Its verdict and order stay as saved. */
export function parseReport(json: string): Report {
  const top = new Fields(parseJson(json), '');
  return {
    reportVersion: top.need('reportVersion', version),
    tool: top.need('tool', tool),
    verb: top.need('verb', text),
    ...top.may('createdAt', text),
    verdict: top.need('verdict', oneOf(VERDICTS)),
    ...top.may('headline', text),
    failOn: top.need('failOn', oneOf([...SEVERITIES, 'none'])),
    required: top.need('required', listOf(text)),
    nodes: top.list('nodes', node),
    findings: top.need('findings', listOf(finding)),
    checks: top.list('checks', check),
    changes: top.list('changes', change),
    skipped: top.list('skipped', skip),
  };
}
