/** From targets to a fleet. */
import type { Clock } from '../../base/clock.js';
import { sleep } from '../../base/clock.js';
import { CodedError } from '../../base/errors.js';
import { shown } from '../../base/text.js';
import { compareText } from '../../findings/finding.js';
import { readCommandText, WORKER_FLAG } from '../../upstream/command/read.js';
import type { Fleet, Skipped } from '../facts.js';
import { classify } from './classify.js';
import { composePieces } from './compose.js';
import { disagreementsOf } from './disagree.js';
import { FILES_BYTES_MAX, findFiles, type FoundFile, readText } from './files.js';
import { type KubeObject, kubernetesPieces } from './kubernetes.js';
import { inParallel, NODES_AT_ONCE, NodeReader, type OriginHeaders } from './live.js';
import { type Group, matchPieces } from './match.js';
import { nodeNameOf } from './names.js';
import { nodeOf } from './node.js';
import { type Told, tell } from './person.js';
import type { Piece } from './piece.js';

/** Between two looks at a node that is not ready yet, in milliseconds. */
const WAIT_STEP_MS = 2_000;

export interface GatherOptions extends Told {
  /** URLs, files, folders. */
  readonly targets: readonly string[];
  /** Command lines, as a shell takes them. */
  readonly commands: readonly string[];
  /** Keys for single origins. */
  readonly headers: OriginHeaders;
  /** How long to wait until nodes are ready; 0: not at all. */
  readonly waitMs: number;
}

export interface GatherWorld {
  readonly clock: Clock;
}

/** Throws `usage` for a target that is not there, or a command that starts nothing known. */
export async function gather(options: GatherOptions, world: GatherWorld): Promise<Fleet> {
  const urls = options.targets.filter(isUrl).map((text) => new URL(text));
  const skipped: Skipped[] = [];
  const files = options.targets.filter((text) => !isUrl(text)).flatMap((target) => findFiles(target, skipped));
  const pieces = [...filePieces(files, skipped), ...options.commands.flatMap(commandPieces)];
  const reader = new NodeReader(world.clock, options.headers);
  const live = await inParallel(urls, NODES_AT_ONCE, (url) => readReady(url, reader, options.waitMs, world.clock));
  return fleetOf([...live.flat(), ...pieces], skipped, options);
}

export function isUrl(target: string): boolean {
  return /^https?:\/\//i.test(target);
}

async function readReady(url: URL, reader: NodeReader, waitMs: number, clock: Clock): Promise<Piece[]> {
  const endMs = clock.nowMs() + waitMs;
  for (;;) {
    const pieces = await reader.read(url);
    if (isReady(pieces) || clock.nowMs() + WAIT_STEP_MS > endMs) return pieces;
    await sleep(clock, WAIT_STEP_MS);
  }
}

function isReady(pieces: readonly Piece[]): boolean {
  return pieces.some(({ reading }) => reading.facts.some(({ kind }) => kind === 'pool' || kind === 'ready'));
}

function commandPieces(command: string, order: number): Piece[] {
  const readings = readCommandText(command);
  if (readings.length === 0) {
    // No more of it is shown: keys stand in variables in front, and behind flags.
    const program =
      command
        .trim()
        .split(/\s+/)
        .find((word) => !word.includes('=')) ?? '';
    throw new CodedError(
      'usage',
      `Expected \`--command\` to start an engine or router that is known here, got ${shown(program)}`,
    );
  }
  return readings.map((reading) => ({
    reading,
    source: { kind: 'command', name: '--command' },
    place: `command ${order}`,
    name: null,
    order,
  }));
}

/** Pure but for reading the files. */
function filePieces(files: readonly FoundFile[], skipped: Skipped[]): Piece[] {
  const pieces: Piece[] = [];
  const objects: KubeObject[] = [];
  let bytes = 0;
  for (const file of files) {
    if (bytes > FILES_BYTES_MAX) {
      skipped.push({ name: file.name, why: `more than ${FILES_BYTES_MAX} bytes in all; it is not read` });
      continue;
    }
    const read = readText(file.path);
    if ('why' in read) {
      skipped.push({ name: file.name, why: read.why });
      continue;
    }
    bytes += read.text.length;
    if (read.cut) skipped.push({ name: file.name, why: 'only its first 16 MiB are read' });
    const found = classify(read.text);
    switch (found.kind) {
      case 'skipped':
        skipped.push({ name: file.name, why: found.why });
        break;
      case 'manifest':
        objects.push(...found.kubernetes.map((tree) => ({ tree, file: file.name })));
        pieces.push(...found.compose.flatMap((tree) => composePieces(tree, file.name)));
        break;
      default:
        for (const reading of found.readings) {
          const source = { kind: found.kind, name: file.name };
          pieces.push({ reading, source, place: file.folder, name: nodeNameOf(file.name) });
        }
    }
  }
  return [...pieces, ...kubernetesPieces(objects)];
}

export function fleetOf(pieces: readonly Piece[], skipped: readonly Skipped[], told: Told): Fleet {
  const groups = matchPieces(concerned(pieces));
  const names = nameGroups(groups);
  tell(groups, names, told);
  const nodes = groups.map((group) => nodeOf(group, names.get(group) ?? ''));
  return { nodes, skipped, disagreements: nodes.flatMap(disagreementsOf) };
}

/** NATS and etcd are of interest where Dynamo uses them, and nowhere else. */
function concerned(pieces: readonly Piece[]): readonly Piece[] {
  const dynamo = pieces.some(
    ({ reading }) =>
      reading.engine === 'dynamo' || reading.facts.some((fact) => fact.kind === 'flag' && fact.name === WORKER_FLAG),
  );
  return dynamo ? pieces : pieces.filter(({ reading }) => reading.engine !== 'nats' && reading.engine !== 'etcd');
}

/**
 * What tells a node best: a workload's name, an address, a file's name; else its role or engine. Each name once; who gets which
 * number follows from files and lines, not from the order in which they were given, since fingerprints hang on names.
 */
function nameGroups(groups: readonly Group[]): Map<Group, string> {
  const names = new Map<Group, string>();
  const taken = new Set<string>();
  const next = new Map<string, number>();
  for (const group of [...groups].sort(byPlace)) {
    const base = preferredName(group);
    let number = next.get(base) ?? 1;
    while (taken.has(numbered(base, number))) number++;
    const name = numbered(base, number);
    next.set(base, number + 1);
    taken.add(name);
    names.set(group, name);
  }
  return names;
}

function byPlace(a: Group, b: Group): number {
  const [one, other] = [a.pieces[0]?.source, b.pieces[0]?.source];
  if (one === undefined || other === undefined) return 0;
  return compareText(one.name, other.name) || (one.line ?? 0) - (other.line ?? 0);
}

const numbered = (base: string, number: number): string => (number === 1 ? base : `${base}-${number}`);

function preferredName(group: Group): string {
  const rank = ({ exposure, endpoint, source }: Piece): number =>
    exposure !== undefined ? 0 : endpoint !== undefined ? 1 : source.kind === 'log' ? 2 : 3;
  const named = group.pieces.filter(({ name }) => name !== null).sort((a, b) => rank(a) - rank(b));
  const { role } = group;
  const byRole = role === 'prefill' || role === 'decode' ? role : null;
  return (
    named[0]?.name ??
    byRole ??
    group.pieces.find(({ place }) => place !== '' && !place.startsWith('command'))?.place ??
    group.engine ??
    'node'
  );
}
