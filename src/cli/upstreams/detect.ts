/** What answers at an address: which engine, in which role, with which models. Asked once at the start; adapters read the rest. */
import type { Clock } from '../../base/clock.js';
import { readModels } from '../../upstream/models.js';
import { EndpointReader, type Got, jsonOf } from '../../upstream/poll.js';
import type { Fact, Reading } from '../../upstream/reading.js';
import { asList, asShape, asText, field } from '../../upstream/shapes.js';
import { readWorkers, type RouterWorker } from '../../upstream/sglang/detect.js';
import { readServerInfo } from '../../upstream/sglang/read.js';
import type { EngineTls } from '../../upstream/transport.js';

export type DetectedKind = 'sglang' | 'router' | 'vllm' | 'llamacpp' | 'openai';

export interface Detected {
  readonly kind: DetectedKind;
  /** SGLang's nodes say it; `single` for every other one. */
  readonly role: 'single' | 'prefill' | 'decode';
  /** In the engine's order. */
  readonly models: readonly string[];
  /** Where the engine has its tokenizer, as it names the place: a folder of its own machine, or a name. */
  readonly tokenizerPath: string | null;
  /** Cofferdam's own engine, whose tokens are bytes. */
  readonly countsBytes: boolean;
}

/** Why it is not known what answers. `isGone`: nothing does, so that waiting may help. */
export interface Undetected {
  readonly asked: string;
  readonly came: string;
  readonly change: string | null;
  readonly isGone: boolean;
}

export interface DetectOptions {
  readonly url: URL;
  readonly key: string | null;
  readonly tls?: EngineTls;
  readonly clock: Clock;
  /** Of one answer. @default READ_MS_MAX */
  readonly msMax?: number;
}

/** Never rejects. */
export async function detect(options: DetectOptions): Promise<Detected | Undetected> {
  const reader = readerOf(options);
  try {
    return await detectWith(reader, options);
  } finally {
    reader.close();
  }
}

function readerOf({ url, key, tls, clock, msMax }: DetectOptions): EndpointReader {
  return new EndpointReader({
    clock,
    url,
    key,
    ...(tls === undefined ? {} : { tls }),
    ...(msMax === undefined ? {} : { msMax }),
  });
}

/** Of the owners that engines name in their list of models, those that tell which engine it is. */
const BY_OWNER: Readonly<Record<string, DetectedKind>> = { vllm: 'vllm', llamacpp: 'llamacpp' };

async function detectWith(reader: EndpointReader, options: DetectOptions): Promise<Detected | Undetected> {
  const keyed = options.key !== null;
  const first = await reader.get(MODELS_PATH);
  if (first.kind === 'failure') return undetected(MODELS_PATH, first.words, null, true);
  if (first.status === 401 || first.status === 403) return wantsKey(MODELS_PATH, first.status, keyed);
  // An engine that loads its model, and a proxy whose engine is not there yet.
  if (first.status >= 500) return undetected(MODELS_PATH, `status ${first.status}`, null, true);
  const json = jsonOf(first);
  const models = readModels(json);
  const names = modelNames(models);
  const owner = BY_OWNER[models?.engine ?? ''];
  if (owner !== undefined) return found(owner, names, { tokenizerPath: rootOf(json) });
  const workers = readWorkers(jsonOf(await reader.get('/workers')));
  if (workers !== null) return await router(names, workers, options);
  const sglang = await sglangNode(reader, keyed);
  if (sglang !== null) return sglang;
  if (models === null || names.length === 0) return undetected(MODELS_PATH, modelsWords(first), CHECK_ADDRESS, false);
  return found('openai', names);
}

const MODELS_PATH = '/v1/models';
const CHECK_ADDRESS = 'Check the address: it is the one below which `/v1` lies.';

function found(kind: DetectedKind, models: readonly string[], rest: Partial<Detected> = {}): Detected {
  return { kind, role: 'single', models, tokenizerPath: null, countsBytes: false, ...rest };
}

function undetected(path: string, came: string, change: string | null, isGone: boolean): Undetected {
  return { asked: `GET ${path}`, came, change, isGone };
}

function wantsKey(path: string, status: number, keyed: boolean): Undetected {
  const change = keyed
    ? 'It does not take the key: name the engine’s own, not a tenant’s.'
    : 'It asks for a key: name the engine’s own with `--engine-key env:NAME`, or `key` in the file.';
  return undetected(path, `status ${status}`, change, false);
}

async function sglangNode(reader: EndpointReader, keyed: boolean): Promise<Detected | Undetected | null> {
  for (const path of ['/server_info', '/get_server_info']) {
    const got = await reader.get(path);
    if (got.kind === 'answer' && (got.status === 401 || got.status === 403)) return wantsKey(path, got.status, keyed);
    const json = jsonOf(got);
    const info = json === undefined ? null : readServerInfo(json);
    if (info === null) continue;
    const shape = asShape(json);
    const role = factOf(info, 'role')?.role;
    return found('sglang', modelNames(info), {
      role: role === 'prefill' || role === 'decode' ? role : 'single',
      tokenizerPath:
        shape === null ? null : (asText(field(shape, 'tokenizer_path')) ?? asText(field(shape, 'model_path'))),
      countsBytes: factOf(info, 'version')?.text.startsWith('cofferdam-') ?? false,
    });
  }
  return null;
}

/** A router says nothing of a tokenizer: its first worker does. The router's key is no worker's. */
async function router(
  names: readonly string[],
  workers: readonly RouterWorker[],
  options: DetectOptions,
): Promise<Detected> {
  const [first] = workers;
  if (first === undefined) return found('router', names);
  const reader = readerOf({ ...options, url: first.url, key: null });
  const worker = await sglangNode(reader, false);
  reader.close();
  if (worker === null || !('kind' in worker)) return found('router', names);
  const { models, tokenizerPath, countsBytes } = worker;
  return found('router', names.length > 0 ? names : models, { tokenizerPath, countsBytes });
}

function modelsWords(got: Got): string {
  if (got.kind === 'failure') return got.words;
  return got.status === 200 ? 'an answer that is no list of models' : `status ${got.status}`;
}

function modelNames(reading: Reading | null): string[] {
  const facts = reading?.facts ?? [];
  return facts.flatMap((fact) => (fact.kind === 'model' ? [fact.name] : []));
}

function factOf<Kind extends Fact['kind']>(reading: Reading, kind: Kind): Extract<Fact, { kind: Kind }> | undefined {
  return reading.facts.find((fact): fact is Extract<Fact, { kind: Kind }> => fact.kind === kind);
}

/** vLLM names the folder or the name of its model as the `root` of its card. */
function rootOf(json: unknown): string | null {
  const shape = asShape(json);
  const card = shape === null ? null : asShape(asList(field(shape, 'data'))[0]);
  return card === null ? null : asText(field(card, 'root'));
}
