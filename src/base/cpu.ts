/** CPU time, for figures that have to hold on a machine that others use as well. */
import { readFileSync } from 'node:fs';

/** Seconds of CPU that the calling thread has used; where the system does not tell threads apart, the process. */
export function threadCpuS(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e9;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }
}
