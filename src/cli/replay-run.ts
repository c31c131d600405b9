import { CodedError } from '../base/errors.js';
import type { CliIo } from './io.js';
import type { ReplayOptions } from './options.js';

/** Resolves with the exit code. Not wired yet: nothing behind this verb is connected to the command line. */
export function runReplay(_options: ReplayOptions, _io: CliIo): Promise<number> {
  return Promise.reject(
    new CodedError(
      'internal_error',
      'Expected `cofferdam replay` to be wired to its parts, got a build in which it is not',
    ),
  );
}
