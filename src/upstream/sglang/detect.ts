/** What stands at a URL, as far as SGLang's own answers tell: a server of one role, or a router. */
import { readModels } from '../models.js';
import { type Got, jsonOf } from '../poll.js';
import { asList, asPort, asShape, asText, field } from '../shapes.js';
import type { NodeRole } from '../upstream.js';
import { promptMax, sglangState } from './state.js';

/** One worker as a router lists it. */
export interface RouterWorker {
  readonly url: URL;
  readonly role: NodeRole;
  readonly bootstrapPort: number | null;
}

export interface DetectedSglang {
  readonly kind: 'sglang' | 'sglang-router';
  readonly role: 'single' | 'prefill' | 'decode' | 'router' | 'unknown';
  readonly models: readonly string[];
  readonly version: string | null;
  /** The two numbers, in tokens: what the node says to its clients, and the longest prompt that it holds and takes. */
  readonly advertised: number | null;
  readonly promptMax: number | null;
  readonly pool: number | null;
  readonly bootstrapPort: number | null;
  /** Of a router, whose own numbers are none. Empty: it lists none, and they must be configured. */
  readonly workers: readonly RouterWorker[];
}

/** Workers of one router that are looked at. */
export const WORKERS_MAX = 1024;

/** `read` asks the node for a path. Null: it is no SGLang, or it does not answer. */
export async function detectSglang(read: (path: string) => Promise<Got>): Promise<DetectedSglang | null> {
  for (const path of ['/server_info', '/get_server_info']) {
    const info = jsonOf(await read(path));
    const state = sglangState({ info });
    if (state !== null) {
      const models = state.context === null ? readModels(jsonOf(await read('/v1/models'))) : null;
      const whole = sglangState({ info, models }) ?? state;
      return {
        kind: 'sglang',
        role: whole.role === 'router' ? 'unknown' : whole.role,
        models: whole.model === null ? [] : [whole.model],
        version: whole.version,
        advertised: whole.context,
        promptMax: promptMax(whole),
        pool: whole.pool,
        bootstrapPort: whole.role === 'prefill' ? whole.bootstrapPort : null,
        workers: [],
      };
    }
    if (isRouterInfo(info)) return router(read);
  }
  return null;
}

/** A router says of itself that it is one, and nothing of sizes. */
function isRouterInfo(info: unknown): boolean {
  const shape = asShape(info);
  return shape !== null && field(shape, 'router_manager') === true;
}

async function router(read: (path: string) => Promise<Got>): Promise<DetectedSglang> {
  const workers = readWorkers(jsonOf(await read('/workers'))) ?? [];
  const models = readModels(jsonOf(await read('/v1/models')));
  return {
    kind: 'sglang-router',
    role: 'router',
    models: (models?.facts ?? []).flatMap((fact) => (fact.kind === 'model' ? [fact.name] : [])),
    version: null,
    advertised: null,
    promptMax: null,
    pool: null,
    bootstrapPort: null,
    workers,
  };
}

/** `GET /workers` of sglang-router; null: it is no list of workers. */
export function readWorkers(json: unknown): readonly RouterWorker[] | null {
  const shape = asShape(json);
  const list = shape === null ? json : field(shape, 'workers');
  if (!Array.isArray(list)) return null;
  return asList(list)
    .slice(0, WORKERS_MAX)
    .flatMap((item) => {
      const worker = asShape(item);
      const url = worker === null ? null : httpUrl(asText(field(worker, 'url')));
      if (worker === null || url === null) return [];
      const type = field(worker, 'worker_type');
      const role = type === 'prefill' || type === 'decode' ? type : type === 'regular' ? 'single' : 'unknown';
      return [{ url, role, bootstrapPort: asPort(field(worker, 'bootstrap_port')) }];
    });
}

/** Without user, password, query or fragment: a router's word decides where we ask, and not what we send. */
function httpUrl(text: string | null): URL | null {
  if (text === null || !URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null;
  return new URL(url.origin + url.pathname);
}
