/** Versions as Python packages number them (PEP 440), and llama.cpp's build numbers (`b11434`). */

/** Characters of a version; longer texts are none. */
export const VERSION_CHARACTERS_MAX = 100;

export interface Version {
  /** As it was read. */
  readonly text: string;
  /** `0.5.23` is [0, 5, 23]; `b11434` is [11434]. */
  readonly release: readonly number[];
  /** A build number of llama.cpp; compares only with its like. */
  readonly build: boolean;
  /** `a`, `b`, `rc` with its number. */
  readonly pre: readonly [string, number] | null;
  readonly post: number | null;
  /** A nightly: carries the NEXT release's number, and comes before it. */
  readonly dev: number | null;
}

const PEP_440 =
  /^v?(\d{1,9}(?:\.\d{1,9}){0,7})(?:[-_.]?(a|alpha|b|beta|c|rc|pre|preview)[-_.]?(\d{0,9}))?(?:(?:[-_.]?(?:post|rev|r)[-_.]?(\d{0,9}))|-(\d{1,9}))?(?:[-_.]?dev[-_.]?(\d{0,15}))?(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?$/i;
const BUILD = /^b(\d{1,9})(?:-[0-9a-z]{1,40})?$/i;
const PRE_NAMES: Readonly<Record<string, string>> = { alpha: 'a', beta: 'b', c: 'rc', pre: 'rc', preview: 'rc' };

/** Texts that were parsed: rules compare every node with the same few versions. */
const PARSED = new Map<string, Version | null>();
const PARSED_MAX = 1000;

/** Null for what is no version: a commit, a tag such as `latest`, a build that does not know its number (`b0`). */
export function parseVersion(raw: string): Version | null {
  const known = PARSED.get(raw);
  if (known !== undefined) return known;
  const version = parsedVersion(raw);
  if (PARSED.size < PARSED_MAX && raw.length <= VERSION_CHARACTERS_MAX) PARSED.set(raw, version);
  return version;
}

function parsedVersion(raw: string): Version | null {
  const text = raw.trim();
  if (text.length === 0 || text.length > VERSION_CHARACTERS_MAX) return null;
  const build = BUILD.exec(text);
  if (build !== null) {
    const number = Number(build[1]);
    return number === 0 ? null : { text, release: [number], build: true, pre: null, post: null, dev: null };
  }
  const match = PEP_440.exec(text);
  if (match === null) return null;
  const preName = match[2]?.toLowerCase();
  const post = match[4] ?? match[5];
  return {
    text,
    release: match[1]!.split('.').map(Number),
    build: false,
    pre: preName === undefined ? null : [PRE_NAMES[preName] ?? preName, Number(match[3] || 0)],
    post: post === undefined ? null : Number(post || 0),
    dev: match[6] === undefined ? null : Number(match[6] || 0),
  };
}

/** Zero-padded comparison of release numbers. */
function compareReleases(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Without a pre-release: a bare `.dev` comes before every pre-release, anything else after them. */
function preRank(version: Version): readonly [number, string, number] {
  if (version.pre !== null) return [1, version.pre[0], version.pre[1]];
  return version.dev !== null && version.post === null ? [0, '', 0] : [2, '', 0];
}

/** Below zero when `a` comes before `b`. Null: one is a build number and the other is not. */
export function compareVersions(a: Version, b: Version): number | null {
  if (a.build !== b.build) return null;
  const release = compareReleases(a.release, b.release);
  if (release !== 0) return release;
  const [aKind, aName, aNumber] = preRank(a);
  const [bKind, bName, bNumber] = preRank(b);
  if (aKind !== bKind) return aKind - bKind;
  if (aName !== bName) return aName < bName ? -1 : 1;
  if (aNumber !== bNumber) return aNumber - bNumber;
  const post = (a.post ?? -1) - (b.post ?? -1);
  if (post !== 0) return post;
  return (a.dev ?? Number.POSITIVE_INFINITY) === (b.dev ?? Number.POSITIVE_INFINITY)
    ? 0
    : (a.dev ?? Number.POSITIVE_INFINITY) - (b.dev ?? Number.POSITIVE_INFINITY);
}

/** Whether `version` is `floor` or later; null when that cannot be said. */
export function isAtLeastVersion(version: Version | null, floor: string): boolean | null {
  const wanted = parseVersion(floor);
  if (version === null || wanted === null) return null;
  const order = compareVersions(version, wanted);
  return order === null ? null : order >= 0;
}
