/** Prometheus' text format, as far as engines use it. Linear in the text; what is no sample is passed over. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** From 1. */
  readonly line: number;
}

/** Samples kept of one text: an engine with 16 ranks has some 3,000 that are no histogram's. */
export const SAMPLES_MAX = 20_000;
/** Labels of one sample that are kept. */
export const LABELS_MAX = 64;
const LINE_CHARACTERS_MAX = 20_000;

/** Parts of histograms and start times tell nothing here. */
const PASSED_OVER = /_(?:bucket|created)$/;
const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]{0,200}/;

/** Samples whose name `wanted` accepts. */
export function parsePrometheus(text: string, wanted: (name: string) => boolean): Sample[] {
  const samples: Sample[] = [];
  let start = 0;
  for (let line = 1; start < text.length && samples.length < SAMPLES_MAX; line++) {
    const at = text.indexOf('\n', start);
    const end = at < 0 ? text.length : at;
    if (end - start <= LINE_CHARACTERS_MAX && text.charCodeAt(start) !== 35) {
      const sample = parseLine(text.slice(start, end), line, wanted);
      if (sample !== null) samples.push(sample);
    }
    start = end + 1;
  }
  return samples;
}

function parseLine(raw: string, line: number, wanted: (name: string) => boolean): Sample | null {
  const name = NAME.exec(raw)?.[0];
  if (name === undefined || PASSED_OVER.test(name) || !wanted(name)) return null;
  const labels: Record<string, string> = Object.create(null) as Record<string, string>;
  let rest = name.length;
  if (raw[rest] === '{') {
    rest = readLabels(raw, rest + 1, labels);
    if (rest < 0) return null;
  }
  const value = /^\s+([-+0-9.eEinfINFNaN]{1,40})(?:\s|$)/.exec(raw.slice(rest, rest + 60))?.[1];
  if (value === undefined) return null;
  const number = /^[-+]?inf$/i.test(value) ? (value.startsWith('-') ? -Infinity : Infinity) : Number(value);
  return { name, labels: { ...labels }, value: number, line };
}

/** Reads `a="b",…}` into `labels`; returns where it ended, or −1 when it is none. */
function readLabels(raw: string, start: number, labels: Record<string, string>): number {
  let at = start;
  for (let count = 0; count <= LABELS_MAX; count++) {
    while (raw[at] === ',' || raw[at] === ' ') at++;
    if (raw[at] === '}') return at + 1;
    const equals = raw.indexOf('=', at);
    if (equals < 0 || raw[equals + 1] !== '"') return -1;
    const name = raw.slice(at, equals).trim();
    let value = '';
    at = equals + 2;
    while (at < raw.length && raw[at] !== '"') {
      if (raw[at] === '\\') {
        at++;
        value += raw[at] === 'n' ? '\n' : (raw[at] ?? '');
      } else value += raw[at];
      at++;
    }
    if (at >= raw.length || !/^[a-zA-Z_][a-zA-Z0-9_]{0,100}$/.test(name)) return -1;
    labels[name] = value;
    at++;
  }
  return -1;
}
