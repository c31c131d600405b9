/** What `upstreams` of `cofferdam.yaml` may hold: the embedded engine, or the engines that are already there. */
import type { CountShape, Field, RecordShape, Shape, TaggedShape } from '../config/shape.js';
import * as defaults from './defaults.js';
import { LLAMA_LAYOUTS, REQUIREMENTS } from './upstream-options.js';

const tokens = (min: number, max: number): CountShape => ({ kind: 'count', min, max, unit: 'tokens', suffixes: true });
const requests = (max: number): CountShape => ({ kind: 'count', min: 1, max, unit: 'requests', suffixes: false });
const path = (words: string): Shape => ({ kind: 'text', pattern: '.{1,4095}', words });
const kindField = (kind: string): Field => ({
  name: 'kind',
  shape: { kind: 'choice', of: [kind] },
  words: 'What stands behind the gateway',
  required: true,
  default: kind,
});

const EMBEDDED: RecordShape = {
  kind: 'record',
  fields: [
    kindField('embedded'),
    {
      name: 'model',
      shape: { kind: 'choice', of: ['lab'] },
      words: 'The model that it serves',
      default: 'lab',
    },
    {
      name: 'context',
      shape: tokens(defaults.CONTEXT_TOKENS_MIN, defaults.CONTEXT_TOKENS_MAX),
      words: 'The context that tenants are told',
      default: defaults.DEFAULT_CONTEXT_TOKENS,
      flag: '--context',
    },
    {
      name: 'prefill-pool',
      shape: tokens(defaults.PAGE_TOKENS_MIN, defaults.POOL_TOKENS_MAX),
      words: 'The KV pool of prefill',
      default: defaults.DEFAULT_PREFILL_POOL_TOKENS,
      flag: '--prefill-pool',
    },
    {
      name: 'decode-pool',
      shape: tokens(defaults.PAGE_TOKENS_MIN, defaults.POOL_TOKENS_MAX),
      words: 'The KV pool of decode',
      default: defaults.DEFAULT_DECODE_POOL_TOKENS,
      flag: '--decode-pool',
    },
    {
      name: 'page-size',
      shape: { ...tokens(defaults.PAGE_TOKENS_MIN, defaults.PAGE_TOKENS_MAX), suffixes: false, powerOfTwo: true },
      words: 'The size of a page of KV; pools are multiples of it',
      default: defaults.DEFAULT_PAGE_TOKENS,
      flag: '--page-size',
    },
    {
      name: 'max-running',
      shape: requests(defaults.RUNNING_MAX_MAX),
      words: 'How many requests run at once',
      default: defaults.DEFAULT_RUNNING_MAX,
      flag: '--max-running',
    },
    {
      name: 'prefix-cache',
      shape: { kind: 'switch' },
      words: "Whether a prompt's pages are kept for the same tenant's next ones",
      default: true,
      flag: '--no-prefix-cache',
    },
    {
      name: 'zero-on-release',
      shape: { kind: 'switch' },
      words: 'Whether every page is overwritten with zeros when it is given back',
      default: false,
      flag: '--zero-on-release',
    },
  ],
};

const URL_SHAPE: Shape = {
  kind: 'text',
  pattern: 'https?://[^\\s@?#/]{1,255}(?:/[^\\s@?#]{0,1000})?',
  words: 'an address such as `http://127.0.0.1:8000`, without user, password, query and fragment',
  hidden: true,
};

const URLS: Field = {
  name: 'urls',
  shape: { kind: 'list', item: URL_SHAPE, min: 1, max: defaults.NODES_MAX, unique: true },
  words: 'Where it is; several addresses are replicas of each other',
  required: true,
};

const PORT: CountShape = { kind: 'count', min: 1, max: 65_535, unit: '', suffixes: false };

const pairNodes = (name: 'prefill' | 'decode', fields: readonly Field[]): Field => ({
  name,
  shape: {
    kind: 'list',
    item: {
      kind: 'record',
      fields: [{ name: 'url', shape: URL_SHAPE, words: 'Where it is', required: true }, ...fields],
    },
    min: 1,
    max: defaults.NODES_MAX,
  },
  words: `The ${name} nodes`,
  required: true,
});

const PREFILL = pairNodes('prefill', [
  {
    name: 'bootstrap-port',
    shape: PORT,
    words: 'Its bootstrap port (`--disaggregation-bootstrap-port`). Not said: what the node says',
  },
]);
const DECODE = pairNodes('decode', []);

const ENGINE_TOKENS = tokens(defaults.CONTEXT_TOKENS_MIN, defaults.ENGINE_TOKENS_MAX);

const KEY: Field = {
  name: 'key',
  shape: { kind: 'secret', whole: true },
  words: "Where the engine's own key is to be found, if it asks for one; never a tenant's",
  flag: '--engine-key',
};
const TOKENIZER: Field = {
  name: 'tokenizer',
  shape: path('a folder with `tokenizer.json`'),
  words:
    'The folder of the model’s tokenizer, by which prompts are counted here. Not said: the folder that the engine names, where it can be read here; else the engine counts',
  flag: '--tokenizer',
};
const MODEL: Field = {
  name: 'model',
  shape: { kind: 'text', pattern: '[^\\p{Cc}\\s]{1,200}', words: 'the name of a model, without blanks' },
  words: 'The model that is served, where the engine names several',
};
const CONTEXT: Field = {
  name: 'context',
  shape: ENGINE_TOKENS,
  words: 'The context that tenants are told. Where the engine says a smaller one, that holds',
  flag: '--upstream-limit',
};
const POOL: Field = {
  name: 'pool',
  shape: ENGINE_TOKENS,
  words: 'The KV pool of each node. Where the engine says a smaller one, that holds',
};
const REST: readonly Field[] = [
  {
    name: 'max-running',
    shape: requests(defaults.ENGINE_RUNNING_MAX_MAX),
    words: 'How many requests it gets at once. Not said: as many as it says that it runs',
  },
  {
    name: 'first-byte',
    shape: { kind: 'time', minMs: 100, maxMs: 3_600_000 },
    words: 'How long the first byte of an answer may take',
    default: defaults.FIRST_BYTE_MS_MAX,
  },
  {
    name: 'idle',
    shape: { kind: 'time', minMs: 100, maxMs: 3_600_000 },
    words: 'How long may pass between two pieces of an answer; a healthy stream may take as long as it takes',
    default: defaults.IDLE_MS_MAX,
  },
  {
    name: 'require',
    shape: { kind: 'list', item: { kind: 'choice', of: REQUIREMENTS }, min: 0, max: REQUIREMENTS.length, unique: true },
    words: 'What it must offer; else the start is refused',
    default: [],
  },
  {
    name: 'data-parts',
    shape: { kind: 'switch' },
    words: 'Whether requests may hold images and files (never by URL)',
    default: false,
  },
  {
    name: 'ca',
    shape: path('a file of certificates in PEM'),
    words: 'Authorities for `https:`. Not said: those of the system',
    flag: '--upstream-ca',
  },
  {
    name: 'insecure',
    shape: { kind: 'switch' },
    words: 'Takes any certificate; only on loopback',
    default: false,
  },
];

/** llama-server does not say it. */
const LAYOUT: Field = {
  name: 'layout',
  shape: { kind: 'choice', of: LLAMA_LAYOUTS },
  words:
    'How its slots lie in the KV pool: they share it (`--kv-unified`), or each has its part. Not known: they are taken to share what one takes',
  default: 'unknown',
};

const engine = (kind: string, places: readonly Field[]): RecordShape => ({
  kind: 'record',
  fields: [kindField(kind), ...places, KEY, TOKENIZER, MODEL, CONTEXT, POOL, ...REST],
});

export const UPSTREAM_SHAPE: TaggedShape = {
  kind: 'tagged',
  tag: 'kind',
  variants: {
    embedded: EMBEDDED,
    auto: engine('auto', [URLS]),
    sglang: engine('sglang', [URLS]),
    'sglang-pd': engine('sglang-pd', [PREFILL, DECODE]),
    router: engine('router', [URLS]),
    vllm: engine('vllm', [URLS]),
    llamacpp: engine('llamacpp', [URLS, LAYOUT]),
    openai: engine('openai', [URLS]),
  },
};

/** As the file shows them, in place of the embedded engine. */
export const UPSTREAM_EXAMPLE: readonly string[] = [
  'Engines that are there, in place of the embedded one:',
  '',
  'upstreams:',
  '  - kind: vllm                 # also sglang, llamacpp, openai, router; auto: what answers says what it is',
  '    urls: ["http://127.0.0.1:8000", "http://127.0.0.1:8001"]',
  '    key: env:ENGINE_KEY',
  '  - kind: sglang-pd',
  '    prefill: [{url: "http://127.0.0.1:30000", bootstrap-port: 8998}]',
  '    decode: [{url: "http://127.0.0.1:30001"}]',
  '    tokenizer: /models/llama',
  '    require: [salt, prefill-count]',
];

/** One entry of the list, checked; without defaults. What was wrong is undefined. */
export interface FileUpstream {
  readonly kind?: string;
  readonly 'prefill-pool'?: number;
  readonly 'decode-pool'?: number;
  readonly 'page-size'?: number;
  readonly urls?: readonly (string | undefined)[];
  readonly prefill?: readonly (FileNode | undefined)[];
  readonly decode?: readonly (FileNode | undefined)[];
  readonly key?: string;
  readonly tokenizer?: string;
  readonly model?: string;
  readonly context?: number;
  readonly pool?: number;
  readonly 'max-running'?: number;
  readonly 'first-byte'?: number;
  readonly idle?: number;
  readonly require?: readonly string[];
  readonly layout?: string;
  readonly 'data-parts'?: boolean;
  readonly ca?: string;
  readonly insecure?: boolean;
}

export interface FileNode {
  readonly url?: string;
  readonly 'bootstrap-port'?: number;
}
