/** What a hang-up asks for. */
export type HangUp = 'end' | 'stay';

/**
 * Resolves with the name of the first signal that asks the process to end; the terminal that goes away is one, unless `onHangUp`
 * says otherwise. A second one ends it at once, as always; but a hang-up that may mean something else never does.
 */
export function untilSignal(onHangUp: () => HangUp = () => 'end'): Promise<string> {
  return new Promise((resolve) => {
    let over = false;
    const end = (name: string): void => {
      over = true;
      process.off('SIGINT', end).off('SIGTERM', end);
      resolve(name);
    };
    const hangUp = (): void => {
      if (!over && onHangUp() === 'end') end('SIGHUP');
    };
    process.on('SIGINT', end).on('SIGTERM', end).on('SIGHUP', hangUp);
  });
}

/**
 * A hang-up is a terminal that went away where standard input was one and is none any more: every call on it fails from then on.
 * Anything else is somebody who sent the signal, to have the configuration read again.
 */
export function hangUpMeaning(wasTerminal: boolean, isTerminal: () => boolean): HangUp {
  return wasTerminal && !isTerminal() ? 'end' : 'stay';
}
