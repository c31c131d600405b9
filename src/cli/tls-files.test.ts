/**
 * Goal: both ports speak https with the certificate of two files, take a new one while they serve, and keep the old one where the new
 * one is wrong. Method: what `serve` starts, in this process, and node's own client.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { after, before, describe, test } from 'node:test';
import { authority, certificate, type CertificateName, tlsPath } from '../../test/support/certificates.js';
import { until } from '../../test/support/gateway-harness.js';
import { VllmDouble } from '../../test/support/vllm-double.js';
import { SystemClock, sleep } from '../base/clock.js';
import { parseServeOptions } from './options.js';
import { type Serving, startServing } from './serve-run.js';

const clock = new SystemClock();
const double = new VllmDouble();
const WORLD = { variables: { ACME: 'sk-acme-0001' }, faultNames: [] };
let folder = '';
let upstream = '';
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cofferdam-tls-'));
  upstream = await double.listen();
});
after(async () => {
  rmSync(folder, { recursive: true });
  await double.close();
});

function put(name: CertificateName, key: CertificateName = name): void {
  for (const [from, to] of [
    [`${name}.pem`, 'cert.pem'],
    [`${key}.key`, 'key.pem'],
  ] as const) {
    copyFileSync(tlsPath(from), join(folder, to));
  }
}

function serve(): Promise<Serving> {
  const files = { tlsCert: join(folder, 'cert.pem'), tlsKey: join(folder, 'key.pem') };
  const flags = { ...files, port: '0', opsPort: '0', tenant: ['acme=env:ACME'], upstream: [upstream] };
  return startServing(parseServeOptions(flags, WORLD));
}

/** The status, and the serial number of the certificate that was shown. */
function get(url: string): Promise<{ readonly status: number; readonly serial: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { ca: authority(), agent: false }, (response) => {
      const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate();
      response.resume().on('end', () => resolve({ status: response.statusCode ?? 0, serial: serialNumber }));
    });
    asked.on('error', reject).end();
  });
}

const serialOf = (name: CertificateName): string => new X509Certificate(certificate(name).cert).serialNumber;

/** What comes back on a plain connection, until it is closed. */
function plain(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
      socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n'),
    );
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.on('close', () => resolve(text)).on('error', reject);
  });
}

describe('https', () => {
  test('is what both ports speak, and what is no TLS gets no answer in clear', async () => {
    put('local');
    const serving = await serve();
    const { url, opsUrl } = serving.facts;
    assert.match(`${url} ${opsUrl}`, /^https:\S+ https:\S+$/);
    assert.deepEqual(await get(`${url}/health`), { status: 200, serial: serialOf('local') });
    assert.equal((await get(`${opsUrl}/metrics`)).status, 200);
    assert.ok(!(await plain(url)).includes('HTTP/'));
    assert.equal((await get(`${url}/health`)).status, 200, 'it goes on');
    await serving.close();
  });

  test('goes on with another certificate when the files are replaced, and with the old one when they are wrong', async () => {
    put('local');
    const serving = await serve();
    const { url } = serving.facts;
    put('renewed');
    const endMs = clock.nowMs() + 8000;
    while ((await get(`${url}/health`)).serial !== serialOf('renewed')) {
      assert.ok(clock.nowMs() < endMs, 'the new certificate is not shown');
      await sleep(clock, 20);
    }
    put('local', 'renewed');
    const refused = (): boolean => serving.findings.list().some(({ id }) => id === 'tls.refused');
    await until(clock, 'the finding', refused, 8000);
    assert.equal((await get(`${url}/health`)).serial, serialOf('renewed'));
    assert.ok(!JSON.stringify(serving.findings.list()).includes('BEGIN'));
    await serving.close();
  });

  test('does not start with a key of another certificate, or with none', async () => {
    put('local', 'renewed');
    await assert.rejects(serve(), /to be a certificate in PEM, and .* its private key .*, got: ERR_\w+/);
    writeFileSync(join(folder, 'key.pem'), 'nothing');
    await assert.rejects(serve(), /its private key without a passphrase, got: ERR_\w+/);
    rmSync(join(folder, 'cert.pem'));
    await assert.rejects(serve(), /to hold a certificate in PEM, got none/);
  });
});
