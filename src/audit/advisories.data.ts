// Public advisories of what an audit can meet, one a line. Ranges as they were read; `certain: false` where a range comes from
// memory, from one second-hand source, or where the first fixed version is not named.
import type { Advisory } from './advisories.js';

const CVE = 'https://www.cve.org/CVERecord?id=';
const GHSA = 'https://github.com/advisories/';
const OSV = 'https://osv.dev/vulnerability/';
const STACK = 'https://github.com/munimtechnologies/ai-stack-advisories';
const NVIDIA = 'https://www.nvidia.com/en-us/security/';
const SGLANG = 'https://github.com/sgl-project/sglang/issues/';

export const ADVISORIES: readonly Advisory[] = [
  // vLLM
  { ids: ['CVE-2025-25183', 'GHSA-rm76-4mrf-v9r8'], product: 'vllm', range: { before: '0.7.2' }, severity: 'medium', title: 'crafted prompts collide in the prefix cache and reuse another request’s KV', source: `${CVE}CVE-2025-25183`, certain: false },
  { ids: ['CVE-2025-29783', 'GHSA-x3m8-f7g5-qhm7'], product: 'vllm', range: { from: '0.6.5', before: '0.8.0' }, severity: 'critical', title: 'code execution through the Mooncake integration’s sockets', source: `${CVE}CVE-2025-29783`, certain: false, connector: 'Mooncake' },
  { ids: ['CVE-2025-32444', 'GHSA-hj4w-hm2g-p6w5', 'PYSEC-2025-42'], product: 'vllm', range: { from: '0.6.5', before: '0.8.5' }, severity: 'critical', title: 'code execution through Mooncake’s ZeroMQ sockets, bound to every interface', source: `${OSV}PYSEC-2025-42`, certain: true, connector: 'Mooncake' },
  { ids: ['CVE-2025-47277', 'GHSA-hjq4-87xh-g4fv'], product: 'vllm', range: { from: '0.6.5', before: '0.8.5' }, severity: 'critical', title: 'code execution through the KV transfer of PyNcclPipe, which listens on every interface', source: `${CVE}CVE-2025-47277`, certain: false, connector: 'PyNccl' },
  { ids: ['CVE-2025-30202', 'GHSA-9f8f-2vmf-885j'], product: 'vllm', range: { from: '0.5.2', before: '0.8.5' }, severity: 'medium', title: 'multi-node ZeroMQ socket on every interface gives data away and can be stalled', source: `${GHSA}GHSA-9f8f-2vmf-885j`, certain: false },
  { ids: ['CVE-2025-46570', 'GHSA-4qjh-9fv9-r85r', 'PYSEC-2025-53'], product: 'vllm', range: { before: '0.9.0' }, severity: 'medium', title: 'the time to the first token tells what other tenants have sent; no salts yet', source: `${OSV}PYSEC-2025-53`, certain: true },
  { ids: ['CVE-2025-46722', 'GHSA-c65p-x677-fgj6', 'PYSEC-2025-43'], product: 'vllm', range: { from: '0.7.0', before: '0.9.0' }, severity: 'medium', title: 'images of other shapes hit the same multimodal cache entry', source: `${OSV}PYSEC-2025-43`, certain: true },
  { ids: ['CVE-2026-3108'], product: 'vllm', range: { before: '0.7.2' }, severity: 'info', title: 'named by one blog for speculative decoding, with a date and a version that contradict each other', source: `${CVE}CVE-2026-3108`, certain: false },
  { ids: ['CVE-2026-48746'], product: 'vllm', range: { from: '0.3.0', before: '0.22.0' }, severity: 'critical', title: 'the check of the API key can be passed by', source: `${CVE}CVE-2026-48746`, certain: false },
  { ids: ['CVE-2026-73555', 'GHSA-hwrm-c4cx-rf4j'], product: 'vllm', range: { before: '0.26.0' }, severity: 'low', title: 'validation errors show paths and a user name', source: `${CVE}CVE-2026-73555`, certain: false },
  { ids: ['CVE-2026-73559'], product: 'vllm', range: { from: '0.19.0', before: '0.26.0' }, severity: 'medium', title: 'one request with a list of prompts fans out without a bound', source: `${CVE}CVE-2026-73559`, certain: true },
  { ids: ['CVE-2026-71486'], product: 'vllm', range: { before: '0.26.0' }, severity: 'medium', title: 'the derender routes ignore limits of length', source: `${OSV}CVE-2026-71486`, certain: true },
  { ids: ['CVE-2026-93840'], product: 'vllm', range: { before: '0.29.0' }, severity: 'high', title: 'token ids out of range damage other requests’ logits', source: `${CVE}CVE-2026-93840`, certain: true },
  { ids: ['CVE-2026-93989', 'PYSEC-2026-4000'], product: 'vllm', range: { before: '0.30.0' }, severity: 'high', title: 'lists of bad words damage concurrent requests’ logits: other tenants get wrong tokens', source: `${OSV}PYSEC-2026-4000`, certain: true },
  { ids: ['CVE-2026-94627'], product: 'vllm', range: { through: '0.29.0' }, severity: 'medium', title: 'transfer ids that clients choose collide, and blocks are never given back', source: `${CVE}CVE-2026-94627`, certain: true, connector: 'Mooncake' },
  { ids: ['CVE-2026-100651'], product: 'vllm', range: { before: '0.29.0' }, severity: 'high', title: 'no check of the prompt’s length on the token route', source: `${CVE}CVE-2026-100651`, certain: false, flag: 'enable-scale-out' },
  { ids: ['CVE-2026-105754', 'GHSA-ph72-cqr5-qpp7'], product: 'vllm', range: { before: '0.30.0' }, severity: 'high', title: 'the token route believes multimodal cache keys: entries of others are read or replaced', source: `${CVE}CVE-2026-105754`, certain: true, flag: 'enable-scale-out' },
  { ids: ['CVE-2026-105756'], product: 'vllm', range: { before: '0.30.0' }, severity: 'medium', title: 'an odd salt ends the engine with LMCache’s multiprocess connector', source: `${OSV}CVE-2026-105756`, certain: true, connector: 'LMCacheMP' },
  { ids: ['PYSEC-2026-4198'], product: 'vllm', range: { before: '0.30.0' }, severity: 'medium', title: 'a request id used twice replaces another’s cached embedding', source: `${OSV}PYSEC-2026-4198`, certain: true },
  { ids: ['PYSEC-2026-4325'], product: 'vllm', range: { before: '0.30.0' }, severity: 'low', title: 'labels of the Rust front end grow without a bound', source: `${OSV}PYSEC-2026-4325`, certain: true },
  { ids: ['CVE-2026-114049'], product: 'vllm', range: { before: '0.31.0' }, severity: 'high', title: 'the next tenant’s tokens are masked by what the last one had allowed', source: `${CVE}CVE-2026-114049`, certain: true },
  { ids: ['CVE-2026-129356'], product: 'vllm', range: { from: '0.30.0', before: '0.32.0' }, severity: 'high', title: 'a race in the handling of common prefixes', source: `${CVE}CVE-2026-129356`, certain: true },
  { ids: ['GHSA-v97p-wpxp-px84'], product: 'vllm', range: { from: '0.16.0', before: '0.21.0' }, severity: 'critical', title: 'with pipeline parallelism an earlier request’s tokens go into another user’s request', source: STACK, certain: false, flag: 'pipeline-parallel-size' },
  { ids: ['GHSA-fpch-3xrf-7q96'], product: 'vllm', range: { from: '0.21.0', before: '0.28.0' }, severity: 'high', title: 'a thinking budget forces text into another request', source: STACK, certain: false },
  { ids: ['GHSA-5r3c-5x4v-8gjh'], product: 'vllm', range: { before: '0.33.0' }, severity: 'info', title: 'named with a fix in 0.33.0; what it is was not found', source: STACK, certain: false },
  // SGLang
  { ids: ['CVE-2025-10164'], product: 'sglang', range: { before: '0.5.18' }, severity: 'high', title: 'code execution through the update of weights', source: `${CVE}CVE-2025-10164`, certain: false },
  { ids: ['GHSA-h74r-pwx2-6qr2'], product: 'sglang', range: { before: '0.5.21' }, severity: 'high', title: 'the allow-list of the unpickler can be passed by', source: `${SGLANG}30165`, certain: false },
  { ids: ['CVE-2026-3059'], product: 'sglang', range: { before: '0.5.10' }, severity: 'critical', title: 'code execution through the multimodal scheduler’s public socket', source: `${SGLANG}21435`, certain: false },
  { ids: ['CVE-2026-7301'], product: 'sglang', range: { before: '0.5.10' }, severity: 'critical', title: 'code execution through the multimodal scheduler’s public socket', source: `${SGLANG}21435`, certain: false },
  { ids: ['CVE-2026-3060'], product: 'sglang', range: { before: '0.5.18' }, severity: 'critical', title: 'code execution through the receiver of encoder disaggregation', source: `${CVE}CVE-2026-3060`, certain: false },
  { ids: ['CVE-2026-3989'], product: 'sglang', range: { before: '0.5.18' }, severity: 'info', title: 'a script for replaying dumps unpickles them; it is in no wheel that was read', source: `${CVE}CVE-2026-3989`, certain: false },
  { ids: ['CVE-2026-5760'], product: 'sglang', range: { before: '0.5.18' }, severity: 'critical', title: 'code execution through a chat template', source: `${CVE}CVE-2026-5760`, certain: false },
  { ids: ['CVE-2026-7304'], product: 'sglang', range: { all: true }, severity: 'critical', title: 'code execution through custom logit processors', source: `${CVE}CVE-2026-7304`, certain: true, flag: 'enable-custom-logit-processor' },
  { ids: ['CVE-2026-93034'], product: 'sglang', range: {}, severity: 'high', title: 'a decoder of ZeroMQ messages unpickles', source: `${CVE}CVE-2026-93034`, certain: false },
  { ids: ['CVE-2026-111392'], product: 'sglang', range: { from: '0.5.13', through: '0.5.21' }, severity: 'high', title: 'multimodal hashes of a client’s choice poison the prefix cache', source: `${CVE}CVE-2026-111392`, certain: true },
  // LMCache
  { ids: ['CVE-2026-107204', 'GHSA-xgvf-x9rh-chj9'], product: 'lmcache', range: { through: '0.5.5' }, severity: 'critical', title: 'code execution by one POST to the internal API', source: `${CVE}CVE-2026-107204`, certain: true },
  { ids: ['CVE-2026-105192', 'GHSA-vv44-hjm2-qw2f', 'JFSA-2026-001694382'], product: 'lmcache', range: { from: '0.3.9', through: '0.5.6rc3' }, severity: 'critical', title: 'code execution through the multiprocess message port', source: `${CVE}CVE-2026-105192`, certain: true },
  { ids: ['CVE-2026-107206'], product: 'lmcache', range: { through: '0.5.5' }, severity: 'critical', title: 'the multiprocess HTTP server shows its environment and changes quotas for anyone', source: `${CVE}CVE-2026-107206`, certain: true },
  { ids: ['CVE-2026-107205'], product: 'lmcache', range: { through: '0.5.5' }, severity: 'high', title: 'the coordinator’s HTTP API lists keys for anyone', source: `${CVE}CVE-2026-107205`, certain: false },
  { ids: ['CVE-2026-107207'], product: 'lmcache', range: { through: '0.5.5' }, severity: 'medium', title: 'the monitor’s front end asks hosts of a client’s choice', source: `${CVE}CVE-2026-107207`, certain: false },
  // Mooncake
  { ids: ['CVE-2026-103764'], product: 'mooncake', range: { before: '0.3.13' }, severity: 'critical', title: 'whoever reaches the data port reads and writes process memory, KV included', source: `${CVE}CVE-2026-103764`, certain: true },
  { ids: ['CVE-2026-103765'], product: 'mooncake', range: { through: '0.3.13.post1' }, severity: 'critical', title: 'the metadata server lets anyone redirect KV transfers', source: `${CVE}CVE-2026-103765`, certain: true },
  // TensorRT-LLM
  { ids: ['CVE-2026-24142'], product: 'tensorrt-llm', range: { before: '1.2' }, severity: 'high', title: 'handles that come in are deserialised unsafely', source: `${CVE}CVE-2026-24142`, certain: true },
  { ids: ['CVE-2025-33255'], product: 'tensorrt-llm', range: { before: '1.2' }, severity: 'high', title: 'the MPI server deserialises unsafely', source: `${CVE}CVE-2025-33255`, certain: true },
  { ids: ['CVE-2026-24227'], product: 'tensorrt-llm', range: { through: '1.3.0rc14' }, severity: 'high', title: 'affected up to 1.3.0rc14, by its record', source: `${CVE}CVE-2026-24227`, certain: true },
  { ids: ['CVE-2026-65119'], product: 'tensorrt-llm', range: { from: '1.3.0rc24', through: '1.3.0rc24' }, severity: 'high', title: 'loading a tokenizer for routing by cache runs untrusted code', source: `${NVIDIA}#5883`, certain: true },
  // Dynamo
  { ids: ['CVE-2026-24254'], product: 'dynamo', range: { through: '1.1.0' }, severity: 'critical', title: 'a write out of bounds in multimodal topologies, past the check', source: `${NVIDIA}#5842`, certain: true },
  { ids: ['CVE-2026-24253'], product: 'dynamo', range: { through: '1.1.0' }, severity: 'high', title: 'a write out of bounds', source: `${NVIDIA}#5842`, certain: false },
  { ids: ['CVE-2026-47614'], product: 'dynamo', range: {}, severity: 'high', title: 'asks hosts of a client’s choice', source: `${NVIDIA}#5842`, certain: false },
  { ids: ['CVE-2026-47619'], product: 'dynamo', range: {}, severity: 'medium', title: 'named in the bulletin of August 2026', source: `${NVIDIA}#5842`, certain: false },
  { ids: ['CVE-2026-47620'], product: 'dynamo', range: {}, severity: 'medium', title: 'a race in the manager of adapters', source: `${NVIDIA}#5842`, certain: false },
  { ids: ['CVE-2026-47621'], product: 'dynamo', range: {}, severity: 'medium', title: 'a race in the manager of adapters', source: `${NVIDIA}#5842`, certain: false },
  { ids: ['CVE-2026-47622'], product: 'dynamo', range: { through: '1.2.0' }, severity: 'medium', title: 'errors show secrets', source: `${NVIDIA}#5842`, certain: true },
  { ids: ['CVE-2026-47623'], product: 'dynamo', range: {}, severity: 'high', title: 'deserialises unsafely', source: `${NVIDIA}#5842`, certain: false },
  // llama.cpp
  { ids: ['CVE-2026-43629'], product: 'llamacpp', range: { from: 'b4882', through: 'b9058' }, severity: 'high', title: 'a heap overflow when a saved slot is restored', source: `${CVE}CVE-2026-43629`, certain: true, flag: 'slot-save-path' },
  { ids: ['CVE-2026-21869'], product: 'llamacpp', range: {}, severity: 'high', title: 'a write out of bounds in llama-server, up to commit 55d4206c8', source: `${CVE}CVE-2026-21869`, certain: false },
  { ids: ['CVE-2026-34159'], product: 'llamacpp', range: {}, severity: 'high', title: 'memory errors in the RPC back end', source: `${CVE}CVE-2026-34159`, certain: false, flag: 'rpc' },
  { ids: ['CVE-2026-118375'], product: 'llamacpp', range: { from: 'b8841', through: 'b11865' }, severity: 'high', title: 'memory errors in the RPC back end', source: `${CVE}CVE-2026-118375`, certain: true, flag: 'rpc' },
  { ids: ['CVE-2026-137567'], product: 'llamacpp', range: { from: 'b11450', through: 'b12658' }, severity: 'high', title: 'memory errors in the RPC back end', source: `${CVE}CVE-2026-137567`, certain: true, flag: 'rpc' },
  { ids: ['CVE-2024-42478'], product: 'llamacpp', range: {}, severity: 'high', title: 'the RPC back end reads any memory for whoever asks', source: `${CVE}CVE-2024-42478`, certain: false, flag: 'rpc' },
];
