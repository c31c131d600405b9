/**
 * Goal: an engine over https is believed only with a certificate that an authority signed for its name, and nothing is sent before.
 * Method: a canned engine with certificates of a test authority, asked through the adapter's own call.
 */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { CannedEngine } from '../../test/support/canned-engine.js';
import { authority, certificate, type CertificateName } from '../../test/support/certificates.js';
import { SystemClock } from '../base/clock.js';
import { EngineCall } from './engine-call.js';
import { type EngineTls, engineAgent } from './transport.js';

const engines: CannedEngine[] = [];
after(() => Promise.all(engines.map((engine) => engine.close())));

/** What one call heard: the status of the answer, or the failure. */
async function call(name: CertificateName, tls?: EngineTls) {
  const engine = new CannedEngine({ count: () => 1, tls: certificate(name) });
  engines.push(engine);
  const url = new URL(`${await engine.listen()}/v1/completions`);
  const agent = engineAgent(url, tls);
  const heard = await new Promise<number | string>((resolve) => {
    let status = 0;
    const options = {
      clock: new SystemClock(),
      agent,
      url,
      headers: ['content-type', 'application/json'],
      body: '{"prompt":"a"}',
      firstByteMsMax: 5_000,
      idleMsMax: 5_000,
      bytesMax: 65_536,
    };
    new EngineCall(options, {
      answered: (code) => {
        status = code;
      },
      data() {},
      over: (failure) => resolve(failure ?? status),
    });
  });
  agent.destroy();
  return { heard, sent: engine.requests.length };
}

describe('an engine over https', () => {
  test('is asked when its certificate is signed for its name by an authority that was named', async () => {
    assert.deepEqual(await call('local', { ca: authority() }), { heard: 200, sent: 1 });
  });

  test('is sent nothing when another authority, or none, signed its certificate', async () => {
    for (const tls of [{ ca: authority('other-authority') }, undefined]) {
      const { heard, sent } = await call('local', tls);
      assert.match(String(heard), /^the connection failed \(\w*(?:UNABLE|SELF_SIGNED)\w*\)$/);
      assert.equal(sent, 0);
    }
  });

  test('is sent nothing when its certificate is of another name', async () => {
    const { heard, sent } = await call('elsewhere', { ca: authority() });
    assert.deepEqual([heard, sent], ['the connection failed (ERR_TLS_CERT_ALTNAME_INVALID)', 0]);
  });

  test('on loopback may go unchecked, elsewhere never', async () => {
    assert.deepEqual(await call('elsewhere', { insecure: true }), { heard: 200, sent: 1 });
    const far = new URL('https://engine.example/');
    assert.throws(() => engineAgent(far, { insecure: true }), /unchecked on loopback only/);
  });
});
