/** `cofferdam marker TENANT`: prints markers of a tenant, the very ones that a server with the same secret holds to be live. */
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { MARKER_SECRET_BYTES_MIN, makeMarker } from '../markers/marker.js';
import { loadConfig } from './config-file.js';
import { MARKERS_PER_TENANT_MAX, type MarkerOptions, PERIOD_PATTERN } from './config-markers.js';
import { CONFIG_FILE } from './config-shape.js';
import { TENANT_NAME_CHARACTERS_MAX } from './defaults.js';
import type { MarkerFlags } from './flags.js';
import { type CliIo, EXIT } from './io.js';
import { choice, count } from './options.js';
import { parseSecretFlag } from './secret-text.js';

/** Throws CodedError `usage`. */
export function marker(tenant: string, flags: MarkerFlags, io: CliIo): number {
  const output = choice('--output', flags.output, ['table', 'json'], 'table');
  if (!/^[a-z0-9][a-z0-9_-]*$/.test(tenant) || tenant.length > TENANT_NAME_CHARACTERS_MAX) {
    const wanted = `1 to ${TENANT_NAME_CHARACTERS_MAX} of a-z, 0-9, \`-\` and \`_\``;
    throw new CodedError('usage', `Expected the name of the tenant to be ${wanted}, got ${shown(tenant)}`);
  }
  const options = flags.secret === undefined ? fromFile(tenant, flags, io) : fromFlags(flags.secret, flags, io);
  const { periods, perTenant, secret } = options;
  const period = flags.period ?? periods.at(-1)!;
  if (!periods.includes(period)) {
    const live = periods.map((each) => `\`${each}\``).join(', ');
    throw new CodedError('usage', `Expected \`--period\` to be one that is live (${live}), got ${shown(period)}`);
  }
  const first = count('--index', flags.index, 0, 0, perTenant - 1);
  const wanted = count('--count', flags.count, 1, 1, perTenant - first);
  const key = Buffer.from(secret.reveal());
  for (let index = first; index < first + wanted; index++) {
    const made = makeMarker(key, tenant, period, index);
    const { text, owner } = made;
    io.out(output === 'json' ? `${JSON.stringify({ marker: text, tenant: owner, period, index })}\n` : `${text}\n`);
  }
  return EXIT.clean;
}

/** What the gateway that reads this file holds to be live: a marker that it would not know is not printed. */
function fromFile(tenant: string, flags: MarkerFlags, io: CliIo): MarkerOptions {
  const path = flags.config ?? CONFIG_FILE;
  const file = loadConfig(path, { variables: io.variables, flags: {} });
  if ('lines' in file) throw new CodedError('usage', file.lines.join('\n'));
  const { markers } = file.running;
  if (markers === null) {
    const change = 'Write them there, or name a secret with `--secret` and a period with `--period`.';
    throw new CodedError('usage', `Expected ${shown(path)} to say \`markers\`, got nothing. ${change}`);
  }
  if (file.tenants.length > 0 && !file.tenants.some(({ name }) => name === tenant)) {
    throw new CodedError('usage', `Expected a tenant that ${shown(path)} names, got ${shown(tenant)}`);
  }
  return markers;
}

function fromFlags(source: string, { period }: MarkerFlags, io: CliIo): MarkerOptions {
  const secret = parseSecretFlag('--secret', source, io.variables);
  const length = Buffer.byteLength(secret.reveal());
  if (length < MARKER_SECRET_BYTES_MIN) {
    const expected = `a secret of markers of at least ${MARKER_SECRET_BYTES_MIN} characters`;
    throw new CodedError('usage', `Expected ${expected}, got ${length}`);
  }
  if (period === undefined || !new RegExp(`^${PERIOD_PATTERN}$`).test(period)) {
    const got = period === undefined ? 'nothing' : shown(period);
    throw new CodedError('usage', `Expected \`--period\` to name a stretch of time, such as \`2026-11\`, got ${got}`);
  }
  return { secret, periods: [period], perTenant: MARKERS_PER_TENANT_MAX, holdBack: null };
}
