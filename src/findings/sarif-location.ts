import { type FindingPlace, placeText } from './finding.js';

/** Whether a place is in a file: it has a line, or its source ends like a file and is no address. */
export function isFilePlace({ source, line }: FindingPlace): boolean {
  if (!/[^/\\.]/.test(source) || /^[a-z][a-z0-9+.-]*:\/\//i.test(source)) return false;
  return line !== undefined || /[^/\\\s]\.[a-z][a-z0-9]{0,9}$/i.test(source);
}

/**
 * Both kinds of location (3.28): the node always by name, and a file with its line where there is one. An endpoint gets an
 * artifact of its own name besides: GitHub refuses a whole log in which one location has no artifact.
 */
export function locationOf(where: FindingPlace): object {
  const logical = { name: where.node, fullyQualifiedName: placeText(where), kind: 'resource' };
  const artifactLocation = isFilePlace(where)
    ? fileUri(where.source)
    : {
        ...fileUri(`endpoints/${pathSafe(where.node)}`),
        description: { text: 'Stands for an endpoint: no such file.' },
      };
  return {
    physicalLocation: { artifactLocation, ...(where.line === undefined ? {} : { region: { startLine: where.line } }) },
    logicalLocations: [logical],
  };
}

/** A name as one segment of a path. */
function pathSafe(name: string): string {
  const plain = name.replace(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^[.-]+|[.-]+$/g, '');
  return plain === '' ? 'unnamed' : plain;
}

/** Relative to where the audit ran, or absolute; as a URI in which nothing of the name is a scheme, a query or a host. */
function fileUri(path: string): { uri: string; uriBaseId?: string } {
  const slashes = path.replaceAll('\\', '/');
  const encoded = slashes
    .replace(/^(?:\.\/)+/, '')
    .split('/')
    .map(encodeURIComponent)
    .join('/');
  if (/^[a-z]:\//i.test(slashes)) return { uri: `file:///${encoded}` };
  if (slashes.startsWith('/')) return { uri: `file://${encoded.replace(/^\/+/, '/')}` };
  return { uri: encoded, uriBaseId: '%SRCROOT%' };
}
