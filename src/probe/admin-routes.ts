/** Routes that are an operator's: which of them answer a tenant. */
import type { Answer } from './answer.js';
import type { Lab } from './lab.js';
import { newName } from './recall.js';
import type { ProbeTenant } from './target.js';

/** They read only. What they show belongs to every tenant: load, prompts in slots, workers, sizes, on some engines even keys. */
const READING: readonly string[] = [
  'server_info',
  'get_server_info',
  'slots',
  'props',
  'metrics',
  'engine_metrics',
  'workers',
  'list_workers',
  'get_loads',
  'get_load',
  'v1/loads',
  'load',
  'lora-adapters',
];

/** They change what the engine does, some of them by GET: never without `--allow-destructive`. */
const CHANGING: readonly string[] = ['flush_cache', 'abort_request', 'reset_prefix_cache', 'start_profile'];

/** Ways to write one path that a rule of paths can miss. */
const SPELLINGS: readonly ((route: string) => string)[] = [
  (route) => `/${route}`,
  (route) => `/${route}/`,
  (route) => `//${route}`,
  (route) => `/v1/../${route}`,
  (route) => `/v1/%2e%2e/${route}`,
  (route) => `/v1/..%2f${route}`,
  (route) => `/v1%2f..%2f${route}`,
  (route) => `/%${route.charCodeAt(0).toString(16)}${route.slice(1)}`,
];

const DEADLINE_MS = 5_000;
/** Without an answer, after so many nothing more is asked of routes. */
const UNANSWERED_MAX = 3;
const HTTP_OK = 200;

export interface OpenRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly request: string;
}

export interface RouteFindings {
  readonly open: readonly OpenRoute[];
  readonly asked: number;
  readonly unanswered: number;
  readonly serverErrors: number;
}

export function routeRequestsMax(allowsDestructive: boolean): number {
  const routes = READING.length + (allowsDestructive ? CHANGING.length * 2 : 0);
  return (routes + 1) * SPELLINGS.length;
}

/**
 * Asks for each route, in each spelling until one of them opens it. An answer counts as the route's only where a path that nobody serves,
 * spelt the same way, is answered otherwise: some endpoints answer everything.
 */
export async function askRoutes(lab: Lab, tenant: ProbeTenant): Promise<RouteFindings> {
  const asking = new RouteAsking(lab, tenant);
  await asking.controls();
  for (const route of READING) await asking.route('GET', route);
  if (lab.options.allowDestructive) {
    for (const route of CHANGING) {
      await asking.route('GET', route);
      await asking.route('POST', route);
    }
  }
  return asking;
}

class RouteAsking implements RouteFindings {
  readonly open: OpenRoute[] = [];
  asked = 0;
  unanswered = 0;
  serverErrors = 0;
  readonly #lab: Lab;
  readonly #tenant: ProbeTenant;
  readonly #nobodys = new Map<number, Answer>();

  constructor(lab: Lab, tenant: ProbeTenant) {
    this.#lab = lab;
    this.#tenant = tenant;
  }

  async controls(): Promise<void> {
    const nobodys = newName(this.#lab.chance);
    for (const [i, spell] of SPELLINGS.entries()) this.#nobodys.set(i, await this.#ask('GET', spell(nobodys)));
  }

  async route(method: 'GET' | 'POST', route: string): Promise<void> {
    for (const [i, spell] of SPELLINGS.entries()) {
      if (this.unanswered >= UNANSWERED_MAX) return;
      const path = spell(route);
      const answer = await this.#ask(method, path);
      if (!hasContent(answer) || isSame(answer, this.#nobodys.get(i))) continue;
      this.open.push({ method, path, request: answer.id });
      return;
    }
  }

  async #ask(method: 'GET' | 'POST', path: string): Promise<Answer> {
    const body = method === 'POST' ? { body: '{}' } : {};
    const answer = await this.#lab.plain({ tenant: this.#tenant, method, path, deadlineMs: DEADLINE_MS, ...body });
    this.asked++;
    if (answer.outcome === 'hung' || answer.outcome === 'failed') this.unanswered++;
    if ((answer.status ?? 0) >= 500) this.serverErrors++;
    return answer;
  }
}

function hasContent(answer: Answer): boolean {
  return answer.status === HTTP_OK && answer.firstByteMs !== null;
}

function isSame(answer: Answer, nobodys: Answer | undefined): boolean {
  if (nobodys === undefined || !hasContent(nobodys) || nobodys.strings.size !== answer.strings.size) return false;
  for (const [place, text] of answer.strings) if (nobodys.strings.get(place) !== text) return false;
  return true;
}
