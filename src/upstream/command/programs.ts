/** Which engine a command starts, and where its flags begin. */
import type { EngineName } from '../reading.js';
import type { Word } from './words.js';

export interface Program {
  readonly engine: EngineName;
  /** The words behind the program's name. */
  readonly flags: readonly Word[];
  /** It works behind Dynamo's frontend, and has no API port of its own. */
  readonly worker?: true;
}

/** Python modules (`python -m NAME`), longest first where one begins another. */
const MODULES: readonly (readonly [RegExp, EngineName])[] = [
  [/^sglang_router\.(?:launch_router|launch_server)$|^sglang_router$/, 'sglang-router'],
  [
    /^sglang_router\.mini_lb$|^sglang\.srt\.disaggregation\.mini_lb$|^sglang\.srt\.disaggregation\.launch_lb$/,
    'sglang-mini-lb',
  ],
  [/^sglang\.launch_server$|^sglang\.srt\.entrypoints\.\w+$/, 'sglang'],
  [/^vllm\.entrypoints\.(?:openai\.)?api_server$/, 'vllm'],
  [/^vllm_router(?:\.\w+)*$/, 'vllm-router'],
  [/^dynamo\.sglang(?:\.\w+)*$/, 'sglang'],
  [/^dynamo\.vllm(?:\.\w+)*$/, 'vllm'],
  [/^dynamo\.trtllm(?:\.\w+)*$/, 'tensorrt-llm'],
  [/^dynamo\.(?:frontend|router)(?:\.\w+)*$/, 'dynamo'],
  [/^lmcache(?:\.\w+)*$/, 'lmcache'],
  [/^mooncake(?:\.\w+)*$/, 'mooncake'],
];

/** Programs by name (without folder); a second word where it must follow. */
const PROGRAMS: readonly (readonly [RegExp, RegExp | null, EngineName])[] = [
  [/^vllm$/, /^serve$/, 'vllm'],
  [/^sglang$/, /^serve$/, 'sglang'],
  [/^llama-server(?:\.exe)?$/, null, 'llamacpp'],
  [/^(?:sglang-router|smg|sgl-model-gateway|amg)$/, null, 'sglang-router'],
  [/^vllm-router$/, null, 'vllm-router'],
  [/^trtllm-serve$/, null, 'tensorrt-llm'],
  [/^(?:pd-sidecar|llm-d-routing-sidecar|routing-sidecar)$/, null, 'llmd-sidecar'],
  [/^epp$/, null, 'llmd-epp'],
  [/^mooncake_(?:master|store_service|client|http_metadata_server)$/, null, 'mooncake'],
  [/^lmcache(?:_\w+|-\w+)*$/, null, 'lmcache'],
  [/^cofferdam$/, /^(?:serve|engine)$/, 'cofferdam'],
  [/^nats-server$/, null, 'nats'],
  [/^etcd$/, null, 'etcd'],
];

/** Images whose entry point is the program, so that a container gives flags only. */
const IMAGES: readonly (readonly [RegExp, EngineName])[] = [
  [/(?:^|\/)vllm-openai(?:-[\w-]+)?(?:[:@]|$)|(?:^|\/)llm-d(?:-cuda|-cpu|-xpu)?(?:[:@]|$)/, 'vllm'],
  [/(?:^|\/)llama\.cpp:(?:server|full)|(?:^|\/)llama-server(?:[:@]|$)/, 'llamacpp'],
  [/(?:^|\/)(?:llm-d-)?routing-sidecar(?:[:@]|$)|(?:^|\/)llm-d-router-sidecar(?:[:@]|$)/, 'llmd-sidecar'],
  [/(?:^|\/)(?:llm-d-inference-scheduler|epp|llm-d-router-epp)(?:[:@]|$)/, 'llmd-epp'],
  [/(?:^|\/)(?:sglang-router|sgl-model-gateway|smg)(?:[:@]|$)/, 'sglang-router'],
  [/(?:^|\/)cofferdam(?:[:@]|$)/, 'cofferdam'],
  [/(?:^|\/)nats(?:[:@]|$)/, 'nats'],
  [/(?:^|\/)etcd(?:[:@]|$)/, 'etcd'],
];

/** Words in front of a program that only start it. */
const STARTERS =
  /^(?:exec|nohup|sudo|time|env|numactl|taskset|nice|stdbuf|setsid|tini|dumb-init|\/usr\/bin\/env|--|uv|poetry|run|nsys|profile|mpirun|torchrun|docker|podman)$/;
/** Words in front of the program that are stepped over at most. */
const LEAD_MAX = 200;

export function programOf(words: readonly Word[]): Program | null {
  const end = Math.min(words.length, LEAD_MAX);
  for (let at = 0; at < end; at++) {
    const text = words[at]!.text;
    if (text === '-m' || text === '--module') {
      const engine = matched(MODULES, words[at + 1]?.text ?? '');
      if (engine !== null) {
        const worker = /^dynamo\.(?:sglang|vllm|trtllm)\b/.test(words[at + 1]!.text);
        return withMode({ engine, flags: words.slice(at + 2), ...(worker ? { worker } : {}) });
      }
    }
    const base = text.slice(text.lastIndexOf('/') + 1);
    for (const [name, second, engine] of PROGRAMS) {
      if (!name.test(base) || !isLead(words, at)) continue;
      if (second === null) return withMode({ engine, flags: words.slice(at + 1) });
      if (second.test(words[at + 1]?.text ?? '')) return withMode({ engine, flags: words.slice(at + 2) });
    }
    if (/(?:^|\/)(?:sglang\/launch_server|launch_server)\.py$/.test(text))
      return { engine: 'sglang', flags: words.slice(at + 1) };
  }
  return null;
}

/** `--mini-lb` turns the router's package into the mini load balancer. */
function withMode(program: Program): Program {
  const mini = program.engine === 'sglang-router' && program.flags.some(({ text }) => text === '--mini-lb');
  return mini ? { ...program, engine: 'sglang-mini-lb' } : program;
}

/** Whether only starters, their options and `NAME=value` stand in front: `cat vllm serve` starts nothing. */
function isLead(words: readonly Word[], end: number): boolean {
  let afterStarter = false;
  for (let at = 0; at < end; at++) {
    const { text } = words[at]!;
    if (STARTERS.test(text)) afterStarter = true;
    else if (!/^[A-Za-z_]\w*=/.test(text) && !afterStarter) return false;
  }
  return true;
}

function matched(table: readonly (readonly [RegExp, EngineName])[], text: string): EngineName | null {
  return table.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}

/** The engine that a container of this image starts when it gives flags only. */
export function imageEngine(image: string): EngineName | null {
  return matched(IMAGES, image);
}

/** Images whose tag is the version of what they hold. Dynamo's hold engines too, whose versions are others. */
const VERSIONED: readonly (readonly [RegExp, EngineName])[] = [
  [/^sglang$/, 'sglang'],
  [/^vllm(?:-openai.*)?$/, 'vllm'],
  [/^llama\.cpp$/, 'llamacpp'],
  [/^(?:llm-d-)?routing-sidecar$|^llm-d-router-sidecar$/, 'llmd-sidecar'],
  [/^llm-d-inference-scheduler$|^llm-d-router-epp$/, 'llmd-epp'],
  [/^(?:ai-)?dynamo$/, 'dynamo'],
];

/** `lmsysorg/sglang:v0.5.18-cu126` is 0.5.18. Null: the tag names no version, or the image is of no engine. */
export function imageVersion(image: string): { readonly engine: EngineName | null; readonly text: string } | null {
  const match = /(?:^|\/)([\w.-]{1,100}):([\w.-]{1,128})(?:@sha256:[0-9a-f]{1,64})?$/.exec(image);
  if (match === null) return null;
  const [, name, tag] = match;
  const engine = matched(VERSIONED, /(?:^|\/)ai-dynamo\//.test(image) ? 'ai-dynamo' : name!);
  if (engine === null) return null;
  const version =
    engine === 'llamacpp'
      ? /-(b\d{1,9})$/.exec(tag!)?.[1]
      : /^v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:\.?(?:post|rc|dev)\d{1,12})?)(?:$|[-_])/.exec(tag!)?.[1];
  return version === undefined ? null : { engine, text: version };
}
