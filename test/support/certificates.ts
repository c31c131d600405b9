/** Certificates and keys of `test/fixtures/tls/`, as PEM. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** `local` and `renewed` hold for 127.0.0.1, `elsewhere` for another name; `authority` signed all of them. */
export type CertificateName = 'local' | 'renewed' | 'elsewhere';

export function tlsPath(file: string): string {
  return fileURLToPath(new URL(`../../../test/fixtures/tls/${file}`, import.meta.url));
}

export function certificate(name: CertificateName): { readonly cert: string; readonly key: string } {
  return { cert: readFileSync(tlsPath(`${name}.pem`), 'utf8'), key: readFileSync(tlsPath(`${name}.key`), 'utf8') };
}

export function authority(name: 'authority' | 'other-authority' = 'authority'): string {
  return readFileSync(tlsPath(`${name}.pem`), 'utf8');
}
