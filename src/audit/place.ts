/** Places and commands in words, the same everywhere. */
import { best } from './ask.js';
import type { NodeFacts, Source } from './facts.js';

export function sourceText(source: Source): string {
  return source.line === undefined ? source.name : `${source.name}:${source.line}`;
}

/** The default port of each engine's API, for the command that would settle a question. */
const PORTS: Readonly<Record<string, number>> = { sglang: 30000, vllm: 8000, llamacpp: 8080, cofferdam: 8801 };

/** The one command that asks the running node; for one that was asked already, what else would tell. */
export function askCommand(node: NodeFacts): string {
  if (node.endpoint?.answered === true)
    return 'its startup log or whole command line (what it answered does not tell it)';
  const listens = best(node.listens)?.value;
  const port = listens?.port ?? PORTS[node.engine ?? ''] ?? 30000;
  const host = listens === undefined || /^(?:0\.0\.0\.0|::|\[::\])$/.test(listens.host) ? 'HOST' : listens.host;
  return `\`cofferdam audit ${node.endpoint?.origin ?? `http://${host}:${port}`}\``;
}
