/** What one row of `advisories.data.ts` says, and whether a version is in its range. */
import { compareVersions, parseVersion, type Version } from '../upstream/version.js';
import type { Severity } from '../findings/finding.js';
import type { EngineName } from '../upstream/reading.js';

/** Versions as PEP 440 numbers them, or builds of llama.cpp. None of the bounds: which versions are affected is not public. */
export interface AffectedRange {
  /** First affected; without it, every version from the first on. */
  readonly from?: string;
  /** First version that is not affected: the fix. */
  readonly before?: string;
  /** Last version known to be affected, where no fixed one is named. */
  readonly through?: string;
  /** Every version read so far. */
  readonly all?: true;
}

export interface Advisory {
  /** CVE, GHSA, PYSEC, VulDB or the maker's own, best known first. */
  readonly ids: readonly [string, ...string[]];
  readonly product: EngineName;
  readonly range: AffectedRange;
  readonly severity: Severity;
  /** One line: what a stranger or a tenant could do. */
  readonly title: string;
  /** Where the range was read. */
  readonly source: string;
  /** Whether the range is certain: read in the advisory itself, and contradicted nowhere. */
  readonly certain: boolean;
  /** Only servers with this connector of vLLM (how its name begins), or with this flag, are affected. */
  readonly connector?: string;
  readonly flag?: string;
}

export type InRange = 'yes' | 'maybe' | 'no';

/** `maybe`: a pre-release of the fixed version, a later patch of the last affected one, or a range that is not public. */
export function inRange(version: Version, range: AffectedRange): InRange {
  const { from, before, through } = range;
  if (range.all === true) return 'yes';
  const bounds = [from, before, through].filter((bound) => bound !== undefined);
  if (bounds.length === 0 || bounds.some((bound) => order(version, bound) === null)) return 'maybe';
  if (from !== undefined && comesBefore(version, from)) return 'no';
  if (before !== undefined) {
    if (!comesBefore(version, before)) return 'no';
    // Release candidates and nightlies carry the number of a release that has the fix, and may be older than it.
    return version.build || comesBefore(version, `${before}.dev0`) ? 'yes' : 'maybe';
  }
  if (through !== undefined && order(version, through)! > 0) return sameRelease(version, through) ? 'maybe' : 'no';
  return 'yes';
}

/** Below zero when `version` comes first. Null: one is a build of llama.cpp and the other is not. */
function order(version: Version, bound: string): number | null {
  const parsed = parseVersion(bound);
  return parsed === null ? null : compareVersions(version, parsed);
}

function comesBefore(version: Version, bound: string): boolean {
  const found = order(version, bound);
  return found !== null && found < 0;
}

function sameRelease(version: Version, bound: string): boolean {
  const other = parseVersion(bound);
  return other !== null && version.release.join('.') === other.release.join('.');
}

/** The first version with the fix; null: none is named. */
export function fixedIn({ before }: AffectedRange): string | null {
  return before ?? null;
}

export function rangeText(range: AffectedRange): string {
  const { from, before, through, all } = range;
  if (all === true) return 'every version read';
  if (from === undefined && before === undefined && through === undefined) return 'not public';
  const start = from === undefined ? '' : `from ${from} `;
  return before !== undefined ? `${start}before ${before}` : `${start}up to ${through ?? 'now'}`;
}
