/** What a person sees when the server has started. */
import { faultsOf } from '../handoff/faults.js';
import { ALL_GUARDS, guardsOf } from '../handoff/guards.js';
import type { Rules } from '../handoff/layout.js';

export interface StartFacts {
  readonly url: string;
  readonly opsUrl: string;
  /** Tokens, as all sizes here. */
  readonly advertised: number;
  readonly prefillPool: number;
  readonly decodePool: number;
  readonly effectiveLimit: number;
  readonly limitedBy: string;
  readonly tenants: readonly { readonly name: string; readonly keyFingerprint: string }[];
  readonly rules: Rules;
}

export interface ShownKeys {
  /** Null: not to be shown here. */
  readonly keys: ReadonlyMap<string, string> | null;
  readonly keysFile: string | null;
}

/** Every line of a start with a fault on or a guard off begins with this, so that it cannot be overlooked. */
export function brokenMark(rules: Rules): string {
  const faults = faultsOf(rules.faults);
  const off = guardsOf(ALL_GUARDS & ~rules.guards);
  if (faults.length === 0 && off.length === 0) return '';
  const parts = [];
  if (faults.length > 0) parts.push(`FAULT ${faults.join(', ')}`);
  if (off.length > 0) parts.push(`GUARDS OFF ${off.length === guardsOf(ALL_GUARDS).length ? 'all' : off.join(', ')}`);
  return `[${parts.join('; ')}] `;
}

export function startLines(facts: StartFacts, shown: ShownKeys): string {
  const mark = brokenMark(facts.rules);
  const lines = [
    'Cofferdam serves two numbers side by side, and refuses what does not fit:',
    '',
    `  advertised context  ${facts.advertised} tokens`,
    `  prefill pool        ${facts.prefillPool} tokens`,
    `  decode pool         ${facts.decodePool} tokens`,
    `  effective limit     ${facts.effectiveLimit} tokens of prompt, set by the ${facts.limitedBy}`,
    '',
    `  tenants             ${facts.url}/v1 (OpenAI-compatible, model \`lab\`)`,
    `  operators           ${facts.opsUrl} (a page; /metrics, /findings, /healthz)`,
    '',
  ];
  const first = facts.tenants[0]?.name ?? '';
  for (const { name, keyFingerprint } of facts.tenants) {
    const key = shown.keys?.get(name);
    lines.push(`  ${name.padEnd(18)}  ${key === undefined ? `key with fingerprint ${keyFingerprint}` : key}`);
  }
  if (shown.keysFile !== null) lines.push(`  keys                in ${shown.keysFile} (mode 0600, removed at the end)`);
  const bearer = bearerText(first, shown);
  lines.push(
    '',
    'Try it:',
    '',
    `  curl -s ${facts.url}/v1/completions -H "Authorization: Bearer ${bearer}" -H 'Content-Type: application/json' -d '{"model":"lab","max_tokens":9,"prompt":"The word of the day is cofferdam. Today the word of the day is "}'`,
    '',
    'Ctrl-C ends it.',
    '',
  );
  return lines.map((line) => `${mark}${line}`.trimEnd()).join('\n');
}

/** What stands behind `Bearer` in a line that works when pasted. */
function bearerText(tenant: string, shown: ShownKeys): string {
  const key = shown.keys?.get(tenant);
  if (key !== undefined) return key;
  if (shown.keysFile !== null) return `$(sed -n 's/^${tenant}=//p' ${shown.keysFile})`;
  return `$KEY_OF_${tenant.toUpperCase().replaceAll('-', '_')}`;
}
