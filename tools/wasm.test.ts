/** Goal: the checked-in WebAssembly is what its source compiles to. Method: compile again and compare. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import test from 'node:test';
import { compile, WASM_MODULES } from './wasm.js';

for (const module of WASM_MODULES) {
  test(`${module.target} is ${module.source}, compiled`, {
    skip: !existsSync(module.source) && 'no such source',
  }, async () => {
    assert.equal(await compile(module), readFileSync(module.target, 'utf8'));
  });
}
