/** Goal: whoever waits for a slot gets it. Method: one slot, and a caller that submits from within the release of it, as the gateway does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../base/clock.js';
import type { EngineRequest, EngineSink } from '../handoff/engine-port.js';
import { engineConfig } from './config.js';
import { InlineEngine } from './inline-engine.js';

test('a request that waits for a slot has it before one that is submitted when it is released', () => {
  const config = engineConfig({ context: 64, prefillPool: 64, decodePool: 64, runningMax: 1 });
  const engine = new InlineEngine(config, new ManualClock());
  const ended: string[] = [];
  const submit = (name: string, onReleased: () => void = () => {}): void => {
    const request: EngineRequest = {
      tenant: 1,
      salt: '',
      prompt: Int32Array.of(1, 2, 3),
      maxTokens: 1,
      temperature: 0,
      seed: 1,
      room: null,
      handle: null,
    };
    const sink: EngineSink = {
      started: () => {},
      token: () => {},
      end: () => ended.push(name),
      released: onReleased,
    };
    engine.coordinator.submit(request, sink);
  };
  submit('first', () => submit('third'));
  submit('second');
  assert.ok(
    engine.runUntil(() => ended.length === 3),
    `only ${ended.join(', ')} ended`,
  );
  assert.deepEqual(ended, ['first', 'second', 'third']);
});
