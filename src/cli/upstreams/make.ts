/** Engines that are there, from what was said of them and what they say: detected, paired, opened; or refused, with the reason. */
import { readFileSync } from 'node:fs';
import type { Clock } from '../../base/clock.js';
import { CodedError } from '../../base/errors.js';
import { shown } from '../../base/text.js';
import { effectiveLimit } from '../../handoff/admission.js';
import type { AskEngine } from '../../upstream/counted-there.js';
import { countByLlama } from '../../upstream/llamacpp/count.js';
import { LlamaUpstream } from '../../upstream/llamacpp/adapter.js';
import type { UpstreamNotice } from '../../upstream/notice.js';
import { OpenAiUpstream } from '../../upstream/openai/adapter.js';
import { SglangNode } from '../../upstream/sglang/node.js';
import { SglangPairUpstream } from '../../upstream/sglang/pair.js';
import { SglangRouterUpstream } from '../../upstream/sglang/router.js';
import { SglangUpstream } from '../../upstream/sglang/single.js';
import type { EngineTls } from '../../upstream/transport.js';
import type { Upstream, UpstreamFeature } from '../../upstream/upstream.js';
import { countByVllm } from '../../upstream/vllm/count.js';
import { VllmUpstream } from '../../upstream/vllm/adapter.js';
import type { NodeOption, Requirement, UpstreamOption } from '../upstream-options.js';
import { SLOTS_WORDS } from '../workers-options.js';
import { awaitEngine } from './await-engine.js';
import { type Count, type Counting, Countings } from './counting.js';
import type { Detected } from './detect.js';
import { dressed } from './dressed.js';

export interface MadeUpstream {
  /** Host, port and path; of a pair those of decode. */
  readonly name: string;
  readonly upstream: Upstream;
  /** By what prompts are counted, in words. */
  readonly counted: string;
}

export interface MakeWorld {
  readonly clock: Clock;
  readonly wait: boolean;
  /** Whether other processes of this server send to the same engines. */
  readonly isShared: boolean;
  readonly onNotice: (notice: UpstreamNotice) => void;
  readonly log: (line: string) => void;
}

/** What OpenAI's own routes take; an endpoint that does not says so in its own error. */
const OPENAI_FEATURES: ReadonlySet<UpstreamFeature> = new Set<UpstreamFeature>([
  'sampling',
  'tools',
  'response-format',
  'logprobs',
  'reasoning',
]);
/** Requests at once where neither the engine nor the operator says how many. */
const RUNNING_MAX = 256;

export interface MadeUpstreams {
  readonly list: readonly MadeUpstream[];
  close(): Promise<void>;
}

/** All of them, or none: where one can't be made, those that were are closed. Throws CodedError `usage`. */
export async function makeUpstreams(options: readonly UpstreamOption[], world: MakeWorld): Promise<MadeUpstreams> {
  const list: MadeUpstream[] = [];
  const countings = new Countings();
  const close = async (): Promise<void> => {
    await Promise.all(list.map(({ upstream }) => upstream.close()));
    await countings.close();
  };
  try {
    for (const option of options) await new Making(option, world, countings, list).make();
    return { list, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

interface Found {
  readonly node: NodeOption;
  readonly detected: Detected;
}

const usage = (message: string): CodedError => new CodedError('usage', message);

/** What one entry makes. */
class Making {
  readonly #option: UpstreamOption;
  readonly #world: MakeWorld;
  readonly #countings: Countings;
  /** What was made; whoever asked closes it. */
  readonly #list: MadeUpstream[];
  readonly #tls: EngineTls;
  readonly #key: string | null;
  /** What the nodes told while they were opened, for what is required of them. */
  readonly #told: UpstreamNotice[] = [];

  constructor(option: UpstreamOption, world: MakeWorld, countings: Countings, list: MadeUpstream[]) {
    this.#option = option;
    this.#world = world;
    this.#countings = countings;
    this.#list = list;
    this.#key = option.key?.reveal() ?? null;
    this.#tls = { ...(option.ca === null ? {} : { ca: readAuthority(option.ca) }), insecure: option.insecure };
  }

  async make(): Promise<void> {
    const found: Found[] = [];
    for (const node of this.#option.nodes) found.push({ node, detected: await this.#detect(node) });
    const before = this.#list.length;
    await this.#pairs(found);
    for (const one of found) if (one.detected.role === 'single') await this.#single(one);
    for (const one of this.#list.slice(before)) this.#check(one);
  }

  async #detect(node: NodeOption): Promise<Detected> {
    const { url } = node;
    const { clock, wait, log } = this.#world;
    const detected = await awaitEngine({ url, key: this.#key, tls: this.#tls, clock, wait, log });
    this.#checkKind(node, detected);
    return detected;
  }

  #checkKind({ url, role }: NodeOption, detected: Detected): void {
    const { kind } = this.#option;
    const wanted = kind === 'sglang-pd' ? 'sglang' : kind;
    // Every engine speaks OpenAI's routes: whoever says so wants nothing more.
    if (wanted !== 'auto' && wanted !== 'openai' && wanted !== detected.kind) {
      throw usage(`Expected ${url.origin} to be ${wanted}, got ${detected.kind}. Correct its kind or its address.`);
    }
    if (role !== null && role !== detected.role) {
      throw usage(`Expected ${url.origin} to be a ${role} node, got the role ${detected.role}.`);
    }
    if (kind === 'sglang' && detected.role !== 'single') {
      throw usage(
        `Expected ${url.origin} to be one node by itself, got a ${detected.role} node. Use the kind \`sglang-pd\`.`,
      );
    }
  }

  /** One upstream for each decode node, with all prefill nodes of its model. */
  async #pairs(found: readonly Found[]): Promise<void> {
    const decodes = found.filter(({ detected }) => detected.role === 'decode');
    const prefills = found.filter(({ detected }) => detected.role === 'prefill');
    const isOwn = (prefill: Found, decode: Found): boolean => prefill.detected.models[0] === decode.detected.models[0];
    const alone =
      prefills.find((prefill) => !decodes.some((decode) => isOwn(prefill, decode))) ??
      decodes.find((decode) => !prefills.some((prefill) => isOwn(prefill, decode)));
    if (alone !== undefined) throw lonely(alone);
    const nodes = new Map(prefills.map((one) => [one, this.#sglangNode(one.node)]));
    for (const decode of decodes) {
      const own = prefills.filter((prefill) => isOwn(prefill, decode));
      await this.#pair(
        decode,
        own.map((one) => nodes.get(one)!),
      );
    }
  }

  async #pair(decode: Found, prefills: readonly SglangNode[]): Promise<void> {
    const counting = this.#counting(decode, null);
    const options = this.#sglangOptions(decode, counting);
    this.#made(decode, await SglangPairUpstream.open(this.#sglangNode(decode.node), prefills, options), counting);
  }

  async #single(found: Found): Promise<void> {
    const { kind } = this.#option.kind === 'openai' ? { kind: 'openai' as const } : found.detected;
    switch (kind) {
      case 'sglang': {
        const counting = this.#counting(found, null);
        const options = this.#sglangOptions(found, counting);
        return this.#made(found, await SglangUpstream.open(this.#sglangNode(found.node), options), counting);
      }
      case 'vllm': {
        const counting = this.#counting(found, (ask) => countByVllm(ask, this.#model(found)));
        return this.#made(found, await VllmUpstream.open(this.#watched(found, counting)), counting);
      }
      case 'llamacpp': {
        if (this.#world.isShared)
          throw usage(`Expected one process in front of ${found.node.url.origin}, got several: ${SLOTS_WORDS}.`);
        const counting = this.#counting(found, countByLlama);
        return this.#made(
          found,
          await LlamaUpstream.open({ ...this.#watched(found, counting), layout: this.#option.layout }),
          counting,
        );
      }
      case 'openai': {
        const counting = this.#counting(found, null);
        return this.#made(found, this.#openAi(found, counting), counting);
      }
      case 'router': {
        const counting = this.#counting(found, null);
        const node = { url: found.node.url, key: this.#key, tls: this.#tls };
        const { require } = this.#option;
        const options = { ...this.#sglangOptions(found, counting), node, workers: null, require };
        return this.#made(found, await SglangRouterUpstream.open(options), counting);
      }
    }
  }

  #openAi(found: Found, { count }: Counting): Upstream {
    const { url } = found.node;
    const { context, pool } = this.#option;
    if (context === null) {
      throw usage(
        `Expected \`--upstream-limit\`, or \`context\` in the file, for ${url.origin}: such an endpoint does not say what it holds.`,
      );
    }
    if (count === null) {
      const change = 'Name the folder of its model’s tokenizer: `--tokenizer DIR`, or `tokenizer` in the file.';
      throw usage(`Expected something that counts the prompts of ${url.origin} as it does, got nothing. ${change}`);
    }
    this.#notice({
      kind: 'no-salt',
      severity: 'medium',
      node: url.host,
      words: 'whether it caches prefixes is not known, and it takes no salt',
    });
    return new OpenAiUpstream({
      ...this.#common(found),
      context,
      pool: pool ?? context,
      runningMax: this.#option.runningMax ?? RUNNING_MAX,
      features: OPENAI_FEATURES,
      answersAs: found.detected.models,
      count,
    });
  }

  #watched(found: Found, { count }: Counting) {
    const { context, pool, runningMax } = this.#option;
    return {
      ...this.#common(found),
      context,
      pool,
      ...(runningMax === null ? {} : { runningMax }),
      ...(count === null ? {} : { count }),
      onNotice: (notice: UpstreamNotice) => this.#notice(notice),
    };
  }

  #common(found: Found) {
    const { firstByteMsMax, idleMsMax } = this.#option;
    const { clock } = this.#world;
    return {
      url: found.node.url,
      key: this.#key,
      tls: this.#tls,
      models: [this.#model(found)],
      clock,
      firstByteMsMax,
      idleMsMax,
    };
  }

  #sglangNode({ url, bootstrapPort }: NodeOption): SglangNode {
    return new SglangNode({
      url,
      key: this.#key,
      tls: this.#tls,
      clock: this.#world.clock,
      onNotice: (notice) => this.#notice(notice),
      ...(bootstrapPort === null ? {} : { bootstrap: { port: bootstrapPort } }),
    });
  }

  #sglangOptions(found: Found, { count }: Counting) {
    if (count === null) {
      const { origin } = found.node.url;
      const named = found.detected.tokenizerPath;
      const where = named === null ? '' : ` (it names ${shown(named)}, which has no tokenizer.json here)`;
      const change = 'Name the folder of its model’s tokenizer: `--tokenizer DIR`, or `tokenizer` in the file.';
      throw usage(`Expected a tokenizer for ${origin}, since SGLang counts no chats, got none${where}. ${change}`);
    }
    const { runningMax, firstByteMsMax, idleMsMax } = this.#option;
    return {
      model: this.#model(found),
      ...(runningMax === null ? {} : { runningMax }),
      clock: this.#world.clock,
      count,
      onNotice: (notice: UpstreamNotice) => this.#notice(notice),
      firstByteMsMax,
      idleMsMax,
    };
  }

  /** The model that tenants ask for. */
  #model({ node, detected }: Found): string {
    const { model } = this.#option;
    const [first] = detected.models;
    if (model !== null && detected.models.length > 0 && !detected.models.includes(model)) {
      throw usage(
        `Expected ${node.url.origin} to serve ${shown(model)}, got ${detected.models.map(shown).join(', ')}.`,
      );
    }
    const name = model ?? first;
    if (name !== undefined) return name;
    throw usage(`Expected ${node.url.origin} to name its model, got none. Name it with \`model\` in the file.`);
  }

  /** `own`: how the engine itself is asked for a count. */
  #counting({ node, detected }: Found, own: ((ask: AskEngine) => Count) | null): Counting {
    if (own === null) return this.#countings.of(this.#option, detected, null);
    const { clock } = this.#world;
    const ask = this.#countings.asking({ clock, url: node.url, key: this.#key, tls: this.#tls });
    return this.#countings.of(this.#option, detected, own(ask));
  }

  #made({ node }: Found, upstream: Upstream, { words, name }: Counting): void {
    const { context, pool, dataParts } = this.#option;
    this.#list.push({
      name: node.url.host + node.url.pathname.replace(/\/$/, ''),
      upstream: dressed(upstream, { context, pool, counting: name, dataParts }),
      counted: words,
    });
  }

  #notice(notice: UpstreamNotice): void {
    if (this.#told.length < TOLD_MAX) this.#told.push(notice);
    this.#world.onNotice(notice);
  }

  /** What was required is there, and it is known what fits. */
  #check({ name, upstream }: MadeUpstream): void {
    for (const need of this.#option.require) {
      const missing = this.#told.find(({ kind }) => kind === LACKS[need]);
      if (missing === undefined) continue;
      throw usage(`Expected ${name} to offer \`${need}\`, as \`require\` says, got: ${missing.words}.`);
    }
    if (effectiveLimit(upstream.capacity()) !== null) return;
    const { context, prefillPool, decodePool } = upstream.capacity();
    const unknown = [
      ...(context === null ? ['its context'] : []),
      ...(prefillPool === null || decodePool === null ? ['what its KV pool holds'] : []),
    ];
    const why = this.#told.find(({ kind }) => kind === 'capacity-unknown' || kind === 'pair-mismatch')?.words;
    const change = 'Let it show its metrics, or write `context` and `pool` down in the file.';
    throw usage(
      `Expected ${name} to say ${unknown.join(' and ')}, so that it is known what fits, got nothing${why === undefined ? '' : ` (${why})`}. ${change}`,
    );
  }
}

const TOLD_MAX = 256;
const LACKS: Readonly<Record<Requirement, UpstreamNotice['kind']>> = {
  salt: 'no-salt',
  'prefill-count': 'no-prefill-count',
};

function lonely({ node, detected }: Found): CodedError {
  const other = detected.role === 'prefill' ? 'decode' : 'prefill';
  const model = detected.models[0] === undefined ? '' : ` of its model ${shown(detected.models[0])}`;
  return usage(
    `Expected a ${other} node${model} for the ${detected.role} node ${node.url.origin}, got none. Name it too.`,
  );
}

function readAuthority(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (thrown) {
    const why = (thrown as NodeJS.ErrnoException).code ?? 'an error';
    throw usage(`Expected ${shown(path)} to be a file of certificates, got ${why}.`);
  }
}
