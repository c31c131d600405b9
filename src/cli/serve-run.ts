import { CodedError } from '../base/errors.js';
import type { CliIo } from './io.js';
import type { ServeOptions } from './options.js';

/** Resolves with the exit code. Not wired yet: nothing behind this verb is connected to the command line. */
export function runServe(_options: ServeOptions, _io: CliIo): Promise<number> {
  return Promise.reject(
    new CodedError(
      'internal_error',
      'Expected `cofferdam serve` to be wired to its parts, got a build in which it is not',
    ),
  );
}
