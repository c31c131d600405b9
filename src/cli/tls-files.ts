/** The certificate and key of the ports: read, checked to be a pair, and read again when they change. */
import { createSecureContext } from 'node:tls';
import type { Clock } from '../base/clock.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import { readSmallFile } from '../config/file.js';
import { FileWatch } from '../config/watch.js';
import type { Finding } from '../findings/finding.js';
import type { ListenTls } from '../wire/index.js';
import type { TlsOption } from './running-options.js';

/** A chain of certificates has a few thousand bytes. */
const PEM_BYTES_MAX = 262_144;

/** Throws CodedError `usage`, which tells nothing of what the files hold. */
export function readTls(files: TlsOption): ListenTls {
  const cert = readPem(files.cert, 'a certificate');
  const key = readPem(files.key, 'a private key');
  try {
    createSecureContext({ cert, key });
  } catch (thrown) {
    const why = (thrown as NodeJS.ErrnoException).code ?? 'an error';
    throw new CodedError(
      'usage',
      `Expected ${shown(files.cert)} to be a certificate in PEM, and ${shown(files.key)} its private key without a passphrase, got: ${why}.`,
    );
  }
  return { cert, key };
}

function readPem(path: string, what: string): string {
  const read = readSmallFile(path, PEM_BYTES_MAX);
  if (typeof read !== 'string') return read.toString('latin1');
  throw new CodedError('usage', `Expected ${shown(path)} to hold ${what} in PEM, got ${read}.`);
}

export interface TlsWatchParts {
  readonly clock: Clock;
  readonly files: TlsOption;
  readonly replace: (tls: ListenTls) => void;
  readonly findings: { record(finding: Finding): unknown };
}

/** Looks at both files; a pair that is none changes nothing, and is a finding. */
export function watchTls({ clock, files, replace, findings }: TlsWatchParts): FileWatch {
  return new FileWatch({
    clock,
    paths: () => [files.cert, files.key],
    changed: () => {
      try {
        replace(readTls(files));
      } catch (thrown) {
        if (!(thrown instanceof CodedError)) throw thrown;
        findings.record(refusedFinding(files, thrown.message));
      }
    },
  });
}

function refusedFinding({ cert }: TlsOption, observed: string): Finding {
  return {
    id: 'tls.refused',
    severity: 'high',
    title: 'The certificate was changed and refused: connections go on with the one before',
    where: { node: 'gateway', source: cert },
    observed,
    wanted: 'a certificate and its own private key',
    change: 'Write both files again; each in one step, by renaming.',
    references: ['docs/GATEWAY.md'],
    certain: true,
  };
}
