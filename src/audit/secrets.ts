/** The last look before anything is shown: texts that look like keys do not pass, wherever they came from. */
import { SECRET } from '../upstream/reading.js';
import { withoutUserInfo } from '../upstream/shapes.js';

/** Forms that keys have: `sk-…`, `hf_…`, `ghp_…`, `AKIA…`, JSON web tokens, and `--api-key WORD`. */
const KEY_FORMS: readonly RegExp[] = [
  /\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,200}/g,
  /\b(?:hf|ghp|gho|ghs|glpat|xox[abp])[_-][A-Za-z0-9_-]{10,200}/g,
  /\bAKIA[0-9A-Z]{12,40}\b/g,
  /\beyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{5,2000}\.[A-Za-z0-9_-]{5,2000}/g,
];
const KEY_FLAG = /(--(?:admin-)?api-key[= ])(?!\(set\)|`|\.\.\.|KEY\b|\$)[^\s`'",;)]{1,500}/g;

/** Texts that were looked at: a run of thousands of nodes says the same few again and again. */
const SEEN = new Map<string, string>();
const SEEN_MAX = 20_000;
const SEEN_CHARACTERS_MAX = 1000;

export function secretsGone(text: string): string {
  const known = SEEN.get(text);
  if (known !== undefined) return known;
  const shown = withoutKeys(text);
  if (SEEN.size < SEEN_MAX && text.length <= SEEN_CHARACTERS_MAX) SEEN.set(text, shown);
  return shown;
}

function withoutKeys(text: string): string {
  let shown = withoutUserInfo(text).replaceAll(KEY_FLAG, `$1${SECRET}`);
  for (const form of KEY_FORMS) shown = shown.replaceAll(form, SECRET);
  return shown;
}
