/** Goal: what only a gateway may set in a request is set by it, and by nobody else. Method: the pure writer of bodies. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { UpstreamRequest } from '../upstream.js';
import { freshRoom, requestBody } from './request.js';

describe('the body of a request', () => {
  const request: UpstreamRequest = {
    id: 'a'.repeat(32),
    traceparent: '',
    prompt: { kind: 'chat', messages: [{ role: 'user', content: 'hi' }] },
    maxTokens: 3,
    temperature: 0,
    seed: 7,
    tenant: 1,
    salt: '',
    engineFields: {},
    params: { top_p: 0.5, model: 'other', rid: 'x' },
  };
  const bootstrap = { host: '[::1]', port: null, room: 9_046_351_419_888_738_945n };

  test('has rooms as digits without loss, one or a list, and nothing of the tenant’s in their place', () => {
    const one = requestBody(request, 'm', false, bootstrap);
    assert.ok(
      one.endsWith('"bootstrap_host":"[::1]","bootstrap_port":null,"bootstrap_room":9046351419888738945}'),
      one,
    );
    const two = requestBody(request, 'm', false, [bootstrap, { ...bootstrap, port: 1, room: 2n }]);
    assert.ok(
      two.endsWith(
        '"bootstrap_host":["[::1]","[::1]"],"bootstrap_port":[null,1],"bootstrap_room":[9046351419888738945,2]}',
      ),
      two,
    );
    const body = JSON.parse(one) as Record<string, unknown>;
    assert.deepEqual([body.model, body.rid, body.top_p, body.cache_salt], ['m', 'a'.repeat(32), 0.5, undefined]);
  });

  test('rooms are 63 bits, and of a thousand no two are equal', () => {
    const rooms = Array.from({ length: 1000 }, freshRoom);
    assert.equal(new Set(rooms).size, rooms.length);
    assert.ok(rooms.every((room) => room >= 0n && room < 2n ** 63n));
    assert.ok(rooms.some((room) => room > 2n ** 62n));
  });
});
