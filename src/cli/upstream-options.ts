/** What is said of the engines behind the gateway, by flags or by a file: checked, before anything is asked of them. */
import { CodedError } from '../base/errors.js';
import { isLoopback } from '../base/loopback.js';
import { shown } from '../base/text.js';
import { parseCount } from '../base/units.js';
import * as defaults from './defaults.js';
import type { ServeFlags } from './flags.js';
import { parseSecretFlag, type SecretText } from './secret-text.js';

/** `auto`: what answers there says what it is. */
export const ENGINE_KINDS = ['auto', 'sglang', 'sglang-pd', 'router', 'vllm', 'llamacpp', 'openai'] as const;
export type EngineKind = (typeof ENGINE_KINDS)[number];

/** `salt`: tenants' prefix caches are kept apart by the engine. `prefill-count`: prefill's own count of the prompt can be compared. */
export const REQUIREMENTS = ['salt', 'prefill-count'] as const;
export type Requirement = (typeof REQUIREMENTS)[number];

/** Of llama-server's slots in its KV pool. */
export const LLAMA_LAYOUTS = ['unified', 'split', 'unknown'] as const;

export interface NodeOption {
  /** Without query, fragment and user; its path has no `/v1` at the end. */
  readonly url: URL;
  /** Null: what the node says. */
  readonly role: 'prefill' | 'decode' | null;
  /** Of a prefill node; null: what the node says. */
  readonly bootstrapPort: number | null;
}

export interface UpstreamOption {
  readonly kind: EngineKind;
  /** Replicas of each other, or the nodes of pairs. */
  readonly nodes: readonly NodeOption[];
  /** The engine's own key; null: it knows none. */
  readonly key: SecretText | null;
  /** A folder with the files of the tokenizer; null: what the engine names, or the engine counts. */
  readonly tokenizer: string | null;
  /** Null: the one that is served there. */
  readonly model: string | null;
  /** Tokens. What the engine says holds where it is smaller; null: what it says. */
  readonly context: number | null;
  readonly pool: number | null;
  /** Null: as many as the engine says that it runs. */
  readonly runningMax: number | null;
  readonly firstByteMsMax: number;
  readonly idleMsMax: number;
  readonly require: readonly Requirement[];
  readonly layout: (typeof LLAMA_LAYOUTS)[number];
  readonly dataParts: boolean;
  /** A file with certificates of authorities; null: the system's. */
  readonly ca: string | null;
  /** Certificates are not checked: only on loopback. */
  readonly insecure: boolean;
}

const usage = (message: string): CodedError => new CodedError('usage', message);

/** Flags of the embedded engine, which mean nothing for another one. */
const EMBEDDED_FLAGS: Readonly<Partial<Record<keyof ServeFlags, string>>> = {
  context: '--context',
  prefillPool: '--prefill-pool',
  decodePool: '--decode-pool',
  pageSize: '--page-size',
  maxRunning: '--max-running',
  zeroOnRelease: '--zero-on-release',
  fault: '--fault',
  trace: '--trace',
};

/** Flags that say something of an engine. */
const ENGINE_FLAGS: Readonly<Partial<Record<keyof ServeFlags, string>>> = {
  engineKey: '--engine-key',
  tokenizer: '--tokenizer',
  upstreamLimit: '--upstream-limit',
  upstreamCa: '--upstream-ca',
};

function given(flags: ServeFlags, names: Readonly<Partial<Record<keyof ServeFlags, string>>>): string | null {
  const found = Object.entries(names).find(([name]) => flags[name as keyof ServeFlags] !== undefined);
  return found?.[1] ?? null;
}

/** The engines that flags name, or else those of the file; none: the embedded one. Throws CodedError `usage`. */
export function parseUpstreams(
  flags: ServeFlags,
  ofFile: readonly UpstreamOption[],
  variables: Readonly<Record<string, string | undefined>>,
): readonly UpstreamOption[] {
  const named = flags.upstream ?? [];
  if (named.length > 0 || ofFile.length > 0) {
    const embedded = flags.prefixCache === false ? '--no-prefix-cache' : given(flags, EMBEDDED_FLAGS);
    const change = 'It is of the embedded engine: take one of them out.';
    if (embedded !== null) throw usage(`Expected \`${embedded}\` without engines that are there, got both. ${change}`);
  }
  if (named.length > 0) return parseNamed(named, flags, variables);
  const flag = given(flags, ENGINE_FLAGS);
  if (flag !== null) throw usage(`Expected \`--upstream\` with \`${flag}\`, got it alone`);
  return ofFile;
}

function parseNamed(
  named: readonly string[],
  flags: ServeFlags,
  variables: Readonly<Record<string, string | undefined>>,
): readonly UpstreamOption[] {
  if (named.length > defaults.NODES_MAX) {
    throw usage(`Expected at most ${defaults.NODES_MAX} times \`--upstream\`, got \`${named.length}\``);
  }
  const nodes = named.map(parseUpstream);
  const kinds = [...new Set(nodes.map(({ kind }) => kind))];
  const common = {
    key: flags.engineKey === undefined ? null : parseSecretFlag('--engine-key', flags.engineKey, variables),
    tokenizer: flags.tokenizer ?? null,
    model: null,
    context: parseLimit(flags.upstreamLimit),
    pool: null,
    runningMax: null,
    firstByteMsMax: defaults.FIRST_BYTE_MS_MAX,
    idleMsMax: defaults.IDLE_MS_MAX,
    require: [],
    layout: 'unknown',
    dataParts: false,
    ca: flags.upstreamCa ?? null,
    insecure: false,
  } as const;
  const options = kinds.map((kind) => ({
    ...common,
    kind,
    nodes: nodes.filter((node) => node.kind === kind).map(({ node }) => node),
  }));
  const problem = twiceNamed(options);
  if (problem !== null) throw usage(`Expected each \`--upstream\` once, got ${shown(problem)} twice`);
  return options;
}

function parseLimit(text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = parseCount(text);
  if (value !== null && value >= defaults.CONTEXT_TOKENS_MIN && value <= defaults.ENGINE_TOKENS_MAX) return value;
  const range = `${defaults.CONTEXT_TOKENS_MIN} to ${defaults.ENGINE_TOKENS_MAX}`;
  throw usage(`Expected \`--upstream-limit\` to be a whole number from ${range}, got ${shown(text)}`);
}

/** An address that is named twice; null: none. */
export function twiceNamed(options: readonly UpstreamOption[]): string | null {
  const hrefs = options.flatMap(({ nodes }) => nodes.map(({ url }) => url.href));
  return hrefs.find((href, index) => hrefs.indexOf(href) !== index) ?? null;
}

/** `URL#kind=vllm&bootstrap=8998`: what stands behind `#` is for us and never sent. Throws CodedError `usage`. */
function parseUpstream(text: string): { readonly kind: EngineKind; readonly node: NodeOption } {
  const at = text.indexOf('#');
  const url = parseEngineUrl(at < 0 ? text : text.slice(0, at));
  if (typeof url === 'string') throw usage(`Expected \`--upstream\` to be ${URL_WANTED}, got ${url}`);
  let kind: EngineKind = 'auto';
  let bootstrapPort: number | null = null;
  for (const part of at < 0 ? [] : text.slice(at + 1).split('&')) {
    const [name = '', value = ''] = part.split('=', 2);
    if (name === 'kind') kind = kindOf(value);
    else if (name === 'bootstrap' && /^\d{1,5}$/.test(value) && Number(value) >= 1 && Number(value) <= 65535)
      bootstrapPort = Number(value);
    else
      throw usage(
        `Expected \`kind=KIND\` or \`bootstrap=PORT\` behind \`#\` of \`--upstream\`, parted by \`&\`, got ${shown(part)}`,
      );
  }
  return { kind, node: { url, role: null, bootstrapPort } };
}

function kindOf(text: string): EngineKind {
  const found = ENGINE_KINDS.find((kind) => kind === text);
  if (found !== undefined && found !== 'sglang-pd') return found;
  const kinds = ENGINE_KINDS.filter((kind) => kind !== 'sglang-pd').map((kind) => `\`${kind}\``);
  throw usage(`Expected \`kind=\` of \`--upstream\` to be ${kinds.join(', ')}, got ${shown(text)}`);
}

export const URL_WANTED = '`http://HOST:PORT` or `https://HOST:PORT`';

/** The address without `/v1` at its end; or what came, in words that hold no key of the address. */
export function parseEngineUrl(text: string): URL | string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return text.includes('@') ? 'something else' : shown(text);
  }
  if (url.username !== '' || url.password !== '')
    return 'one with a user or a password: name the key by `--engine-key`';
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return shown(text);
  if (url.search !== '' || url.hash !== '') return 'one with a query or a fragment';
  url.pathname = url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '');
  return url;
}

/** What is allowed, but not wise. */
export function upstreamWarnings(options: readonly UpstreamOption[]): string[] {
  const clear = options
    .filter(({ key }) => key !== null)
    .flatMap(({ nodes }) => nodes)
    .filter(({ url }) => url.protocol === 'http:' && !isLoopback(url.hostname));
  if (clear.length === 0) return [];
  const hosts = clear.map(({ url }) => `\`${url.host}\``).join(', ');
  return [
    `the engine's key, prompts and answers go to ${hosts} in clear: let the engine speak https, or keep them on one machine`,
  ];
}
