/** Compose files: services, their commands and what they publish. */
import type { Exposure, PortFact, ServiceFact } from '../exposure.js';
import { isLoopbackHost } from '../exposure.js';
import type { Source } from '../facts.js';
import { type Container, readContainer, type Variable, wordsOf } from './container.js';
import type { Piece } from './piece.js';
import { dig, entriesAt, itemsAt, textAt } from './tree.js';
import type { Tree } from './yaml-tree.js';

/** A map of services that have an image, a command or something to build. */
export function isCompose(tree: Tree): boolean {
  const services = [...entriesAt(tree, 'services').values()];
  return (
    textAt(tree, 'kind') === null &&
    services.some((one) => one.kind === 'map' && ['image', 'command', 'build'].some((name) => one.entries.has(name)))
  );
}

export function composePieces(tree: Tree, file: string): Piece[] {
  const pieces: Piece[] = [];
  for (const [name, service] of entriesAt(tree, 'services')) {
    const container = containerOf(service);
    for (const reading of readContainer(container)) {
      pieces.push({
        reading,
        source: { kind: 'manifest', name: file, line: service.line },
        place: '',
        name,
        exposure: exposureOf(name, service, container, file),
      });
    }
  }
  return pieces;
}

function containerOf(service: Tree): Container {
  return {
    image: textAt(service, 'image'),
    entry: wordsOf(dig(service, 'entrypoint')),
    args: wordsOf(dig(service, 'command')),
    variables: variablesOf(dig(service, 'environment')),
    variablesComplete: dig(service, 'env_file') === undefined,
  };
}

/** A map, or a list of `NAME=value`; a name alone is taken from where Compose runs. */
function variablesOf(tree: Tree | undefined): Variable[] {
  if (tree?.kind === 'map') {
    return [...tree.entries].map(([name, value]) => ({ name, value: unexpanded(textAt(value)), line: value.line }));
  }
  return itemsAt(tree).flatMap((item) => {
    const text = textAt(item);
    if (text === null) return [];
    const equals = text.indexOf('=');
    const name = equals < 0 ? text : text.slice(0, equals);
    return [{ name, value: equals < 0 ? null : unexpanded(text.slice(equals + 1)), line: item.line }];
  });
}

function unexpanded(text: string | null): string | null {
  return text !== null && /(?<!\$)\$[{\w]/.test(text) ? null : text;
}

function exposureOf(name: string, service: Tree, container: Container, file: string): Exposure {
  const at = (line: number): Source => ({ kind: 'manifest', name: file, line });
  const mode = dig(service, 'network_mode');
  const published = itemsAt(service, 'ports').flatMap((port) => publishedOf(port));
  const ports: PortFact[] = published.map(({ target, line }) => ({
    number: target,
    name: null,
    hostPort: false,
    source: at(line),
  }));
  const image = dig(service, 'image');
  return {
    workload: `Compose/${name}`,
    namespace: null,
    replicas: null,
    image: container.image === null ? null : { value: container.image, source: at(image?.line ?? service.line) },
    ports,
    hostNetwork: mode === undefined ? null : { value: textAt(mode) === 'host', source: at(mode.line) },
    services: published.map(
      ({ target, host, line }): ServiceFact => ({
        name: `ports of ${name}`,
        type: 'published',
        ports: [target],
        loopback: host !== null && isLoopbackHost(host),
        outside: false,
        source: at(line),
      }),
    ),
    policies: [],
    source: at(service.line),
  };
}

interface Published {
  readonly target: number;
  readonly host: string | null;
  readonly line: number;
}

/** `8000`, `8000:8000`, `127.0.0.1:8000:8000/tcp`, or the long form. Ranges are taken by their first port. */
function publishedOf(port: Tree): Published[] {
  const { line } = port;
  if (port.kind === 'map') {
    const target = Number(textAt(port, 'target') ?? Number.NaN);
    return Number.isInteger(target) ? [{ target, host: textAt(port, 'host_ip'), line }] : [];
  }
  const match =
    /^(?:(\[[0-9a-f:]{2,45}\]|[\w.]{1,100}):)??(?:(\d{1,5})?(?:-\d{1,5})?:)?(\d{1,5})(?:-\d{1,5})?(?:\/\w{1,8})?$/i.exec(
      textAt(port) ?? '',
    );
  return match === null ? [] : [{ target: Number(match[3]), host: match[1] ?? null, line }];
}
