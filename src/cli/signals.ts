/**
 * Resolves with the name of the first signal that asks the process to end; the terminal that goes away is one. A second one ends it at once, as always.
 */
export function untilSignal(): Promise<string> {
  return new Promise((resolve) => {
    const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
    const on = (name: string): void => {
      for (const other of names) process.off(other, on);
      resolve(name);
    };
    for (const name of names) process.on(name, on);
  });
}
