import type { Leaf } from '../config/settings.js';
import type { BoundOptions } from './options.js';

/** What has no flag, defaults included. */
export function boundsOf(leaves: readonly Leaf[]): BoundOptions {
  const values = new Map(leaves.map(({ path, value }) => [path, value]));
  const number = (path: string): number => values.get(path) as number;
  return {
    hostNames: values.get('listen.names') as readonly string[],
    tenantOpenMax: number('limits.open-per-tenant'),
    waitingMax: number('limits.waiting'),
    waitMsMax: number('limits.wait'),
    bodyBytesMax: number('limits.body'),
    drainMs: number('drain.timeout'),
    findingsLog: values.get('findings.log') as BoundOptions['findingsLog'],
  };
}
