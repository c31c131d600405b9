/**
 * Fields that engines read and a tenant must not set, at any depth of a body: they choose pages, rooms, ranks, sessions,
 * namespaces and code. Collected from SGLang 0.5.23 (`managers/io_struct.py`), vLLM 0.32 (its connectors included),
 * llama.cpp's server, Dynamo and the routers in front of them.
 */
const ENGINE_FIELDS: ReadonlySet<string> = new Set([
  // Who the request is, inside an engine: aborts and caches are keyed by it.
  'rid',
  'request_id',
  'remote_request_id',
  'transfer_id',
  'conversation_id',
  'routing_key',
  'external_trace_header',
  'received_time',
  'custom_labels',
  'trace_headers',
  // Prefix-cache namespaces.
  'cache_salt',
  'extra_key',
  'cache_prompt',
  'cache_reuse',
  'id_slot',
  'slot_id',
  'n_cache_reuse',
  'mm_hashes',
  'mm_content_hashes',
  'multi_modal_uuids',
  'mm_processor_kwargs',
  'media_io_kwargs',
  // Transfer between prefill and decode.
  'kv_transfer_params',
  'ec_transfer_params',
  'kv_hints',
  'kv_cache_hints',
  'disaggregated_params',
  'prefill_result',
  'cofferdam_handle',
  'decode_tp_size',
  'encoder_urls',
  'http_worker_ipc',
  'need_wait_for_mm_inputs',
  'do_remote_prefill',
  'do_remote_decode',
  // Scheduling and routing.
  'priority',
  'backend_instance_id',
  'worker_id',
  'prefill_worker_id',
  'decode_worker_id',
  'router_config_override',
  'background',
  'no_logs',
  'log_metrics',
  'timings_per_token',
  // Adapters and code.
  'lora',
  'lora_id',
  'lora_path',
  'lora_request',
  'custom_logit_processor',
  'logits_processors',
  'custom_params',
  'chat_template',
  'chat_template_kwargs',
  // Prompts that are no text, or that change the prompt's length behind the count.
  'input_ids',
  'input_embeds',
  'prompt_embeds',
  'prompt_token_ids',
  'positional_embed_overrides',
  'token_type_ids',
  'truncate_prompt_tokens',
  'truncation_side',
  'add_special_tokens',
  'add_generation_prompt',
  'continue_final_message',
  'documents',
  'n_keep',
  'n_discard',
  // Further data out.
  'prompt_logprobs',
  'echo_prompt_tokens',
]);

/** Families of names. */
const ENGINE_PREFIXES: readonly string[] = [
  'bootstrap_',
  'session_',
  'disagg_',
  'remote_',
  'return_',
  'routed_',
  // Grammars that an engine compiles, with backends and options of its own.
  'guided_',
];
const ENGINE_SUFFIXES: readonly string[] = ['_dp_rank', 'data_parallel_rank'];

/** Objects through which engines and SDKs take fields of all kinds: reported only when nothing inside them is worse. */
const ENGINE_CONTAINERS: ReadonlySet<string> = new Set([
  'extra_body',
  'extra_args',
  'nvext',
  'vllm_xargs',
  'sampling_params',
  'ext',
]);

export function isEngineField(name: string): boolean {
  if (ENGINE_FIELDS.has(name)) return true;
  for (const prefix of ENGINE_PREFIXES) if (name.startsWith(prefix)) return true;
  for (const suffix of ENGINE_SUFFIXES) if (name.endsWith(suffix)) return true;
  return false;
}

export function isEngineContainer(name: string): boolean {
  return ENGINE_CONTAINERS.has(name);
}

/**
 * JSON schemas: the tenant's own data, in which every name passes. `*` stands for any place of an array. An engine reads its own fields
 * beside them, never inside.
 */
const SCHEMAS: ReadonlySet<string> = new Set(['tools.*.function.parameters', 'response_format.json_schema.schema']);
/** What clients' helpers made of an answer's JSON and send back with it: data of any names, of which nothing goes to an engine. */
const CLIENT_FIELDS: ReadonlySet<string> = new Set(['parsed', 'parsed_arguments']);
/** Names at which the way to a schema can begin. */
const SCHEMA_ROOTS: ReadonlySet<string> = new Set(['tools', 'response_format']);

/**
 * Where the first engine-internal field of a body stands, as a path such as `vllm_xargs.kv_transfer_params`; null: nowhere.
 * The body's depth is bounded by its reader, so the recursion is too.
 */
export function findEngineField(body: Readonly<Record<string, unknown>>): string | null {
  for (const name of Object.keys(body)) {
    if (isEngineField(name)) return name;
    const each = body[name];
    if (typeof each !== 'object' || each === null) continue;
    const found = SCHEMA_ROOTS.has(name) ? findBesideSchemas(each, name) : findLeaf(each);
    if (found !== null) return under(name, found);
  }
  return Object.keys(body).find(isEngineContainer) ?? null;
}

/** `way` is where `value` stands, with `*` for places of arrays. */
function findBesideSchemas(value: object, way: string): string | null {
  if (SCHEMAS.has(way)) return null;
  const isArray = Array.isArray(value);
  for (const name of Object.keys(value)) {
    if (!isArray && isEngineField(name)) return name;
    const each: unknown = (value as Record<string, unknown>)[name];
    if (typeof each !== 'object' || each === null) continue;
    const found = findBesideSchemas(each, `${way}.${isArray ? '*' : name}`);
    if (found !== null) return under(isArray ? `[${name}]` : name, found);
  }
  return null;
}

/** The path is put together on the way back: most bodies have none, and must not pay for one at every step. */
function findLeaf(value: object): string | null {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const each: unknown = value[i];
      const found = typeof each === 'object' && each !== null ? findLeaf(each) : null;
      if (found !== null) return under(`[${i}]`, found);
    }
    return null;
  }
  const record = value as Record<string, unknown>;
  for (const name of Object.keys(record)) {
    if (isEngineField(name)) return name;
    const each = record[name];
    if (typeof each !== 'object' || each === null || CLIENT_FIELDS.has(name)) continue;
    const found = findLeaf(each);
    if (found !== null) return under(name, found);
  }
  return null;
}

function under(parent: string, path: string): string {
  return path.startsWith('[') ? parent + path : `${parent}.${path}`;
}

/** The top-level fields that go to the engine when the guard `policy` is off, verbatim. */
export function takeEngineFields(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const taken: Record<string, unknown> = {};
  for (const name of Object.keys(body)) {
    if (isEngineField(name) || isEngineContainer(name)) taken[name] = body[name];
  }
  return taken;
}
