/** What several processes behind one port need, and what is theirs alone. */
import { extname } from 'node:path';
import { CodedError } from '../base/errors.js';
import type { TenantOption } from './keys.js';
import type { RunningOptions } from './running-options.js';
import type { SecretText } from './secret-text.js';
import type { UpstreamOption } from './upstream-options.js';

interface Own {
  readonly running: RunningOptions;
  readonly opsPort: number;
}

interface Checked extends Own {
  readonly upstreams: readonly UpstreamOption[];
  readonly tenants: readonly TenantOption[];
  readonly port: number;
}

/** Throws CodedError `usage` where several processes can't share what is to be served. */
export function checkWorkers({ running, upstreams, tenants, port, opsPort }: Checked): void {
  const { workers } = running;
  if (workers === 1) return;
  const need = (what: string, why: string): CodedError =>
    new CodedError('usage', `Expected ${what} with \`--workers ${workers}\`, got none: ${why}.`);
  if (upstreams.length === 0) throw need('`--upstream`', 'the embedded engine is of one process');
  if (tenants.length === 0) throw need('`--tenant`', 'fresh keys are of one process');
  if (upstreams.some(({ kind }) => kind === 'llamacpp')) {
    throw new CodedError('usage', `Expected one process in front of llama-server, got ${workers}: ${SLOTS_WORDS}.`);
  }
  if (opsPort !== 0 && opsPort + workers - 1 > 65_535) {
    throw new CodedError(
      'usage',
      `Expected \`--ops-port\` to leave room for ${workers} ports above it, got \`${opsPort}\``,
    );
  }
  if (port !== 0 && opsPort !== 0 && port > opsPort && port < opsPort + workers) {
    const ports = `${opsPort} to ${opsPort + workers - 1}`;
    throw new CodedError('usage', `Expected \`--port\` apart from the operators’ ports, ${ports}, got \`${port}\``);
  }
}

export const SLOTS_WORDS = 'its slots and its pool are given out by one process alone';

/** The options of one of them: the tenants' port is shared, the operators' port and the log of settled requests are its own. */
export function workerOptions<T extends Own>(options: T, index: number, secret: SecretText): T {
  const { running, opsPort } = options;
  const { usage } = running;
  return {
    ...options,
    opsPort: opsPort === 0 ? 0 : opsPort + index,
    running: { ...running, secret, usage: usage === null ? null : { ...usage, path: workerPath(usage.path, index) } },
  };
}

/** `usage.jsonl` of the second process is `usage.1.jsonl`: one file has one writer. */
function workerPath(path: string, index: number): string {
  const extension = extname(path);
  return `${path.slice(0, path.length - extension.length)}.${index}${extension}`;
}
