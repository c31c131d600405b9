/**
 * Goal: an answer depends on nothing but the request's own tokens. Method: the same request through other pages, other chunks,
 * other company and a poisoned pool gives the same bits, on the lab model and on a dense random one.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Prng } from '../base/prng.js';
import type { KernelsName } from '../tensor/contract.js';
import type { ModelConfig, ModelWeights } from './config.js';
import {
  DENSE_CONFIG,
  denseWeights,
  generate,
  newRole,
  poison,
  prefillAll,
  range,
  recallPrompt,
  shuffledPages,
} from './fixture.test.help.js';
import { LAB_CONFIG, loadLabWeights } from './lab-weights.js';
import { greedy } from './sampler.js';

const SEED = Number(process.env.SEED ?? 7);
const lab = loadLabWeights();

interface Subject {
  readonly name: string;
  readonly config: ModelConfig;
  readonly weights: ModelWeights;
}

const SUBJECTS: readonly Subject[] = [
  { name: 'lab model', config: LAB_CONFIG, weights: lab },
  { name: 'dense random model', config: DENSE_CONFIG, weights: denseWeights(SEED) },
];

function randomIds(chance: Prng, count: number, config: ModelConfig): Int32Array {
  return Int32Array.from({ length: count }, () => chance.below(Math.min(config.vocab, 256)));
}

/** Last logits of a prompt of 600 tokens and of 8 decode steps, through the given pages. */
function trace(
  subject: Subject,
  pages: Int32Array,
  chunk: number,
  before: 'clean' | 'poisoned' = 'clean',
): Float32Array[] {
  const role = newRole({ ...subject, pages: 64 });
  if (before === 'poisoned') poison(role);
  const ids = randomIds(new Prng(SEED), 600, subject.config);
  const found = [prefillAll(role.model, ids, pages, chunk)];
  let token = greedy(found[0]);
  for (let step = 0; step < 8; step++) {
    const logits = Float32Array.from(role.model.decode([{ token, position: 600 + step, pages }]));
    found.push(logits);
    token = greedy(logits);
  }
  assert.ok(found.every((logits) => logits.every(Number.isFinite)));
  return found;
}

for (const subject of SUBJECTS) {
  const title = (words: string): string => `${subject.name}: ${words} (seed ${SEED})`;

  test(title('scattered pages and one contiguous run give the same bits'), () => {
    const scattered = trace(subject, shuffledPages(new Prng(SEED + 1), 64, 40), 256);
    assert.deepEqual(scattered, trace(subject, range(40), 256));
  });

  test(title('chunks of 64, of 256 and of 7 tokens give the same bits'), () => {
    const wanted = trace(subject, range(40), 256);
    assert.deepEqual(trace(subject, range(40), 64), wanted);
    assert.deepEqual(trace(subject, range(40), 7), wanted);
  });

  test(title('every page poisoned with NaN beforehand, the request’s own included, changes no bit'), () => {
    const pages = shuffledPages(new Prng(SEED + 2), 64, 40);
    assert.deepEqual(trace(subject, pages, 64, 'poisoned'), trace(subject, pages, 64));
  });

  test(title('decoding alone and in a batch of eight give the same bits'), () => {
    const role = newRole({ ...subject, pages: 64 });
    const chance = new Prng(SEED + 3);
    const batch = Array.from({ length: 8 }, (_, index) => {
      const position = chance.between(1, 120);
      const pages = range(8, index * 8);
      prefillAll(role.model, randomIds(chance, position, subject.config), pages);
      return { token: chance.below(subject.config.vocab), position, pages };
    });
    const together = Float32Array.from(role.model.decode(batch));
    const { vocab } = subject.config;
    batch.forEach((item, index) => {
      const alone = Float32Array.from(role.model.decode([item]));
      assert.deepEqual(alone, together.slice(index * vocab, (index + 1) * vocab));
    });
  });

  test(title('a decode step gives the bits that prefill gives for the same token'), () => {
    const role = newRole({ ...subject, pages: 64 });
    const ids = randomIds(new Prng(SEED + 4), 90, subject.config);
    const whole = prefillAll(role.model, ids, range(8));
    prefillAll(role.model, ids.subarray(0, 89), range(8, 8));
    const stepped = Float32Array.from(role.model.decode([{ token: ids[89], position: 89, pages: range(8, 8) }]));
    assert.deepEqual(stepped, whole);
  });

  test(title('WebAssembly and reference agree to 1e-2 in logits'), () => {
    const ids = randomIds(new Prng(SEED + 5), 200, subject.config);
    const of = (kernels: KernelsName): Float32Array =>
      prefillAll(newRole({ ...subject, kernels, pages: 16 }).model, ids, range(16));
    const wasm = of('wasm');
    const reference = of('reference');
    const worst = wasm.reduce((most, value, id) => Math.max(most, Math.abs(value - reference[id])), 0);
    assert.ok(worst < 1e-2, `logits differ by ${worst}`);
    assert.equal(greedy(wasm), greedy(reference));
  });
}

test('WebAssembly and reference give the same greedy text', () => {
  const wasm = newRole({ weights: lab });
  const reference = newRole({ weights: lab, kernels: 'reference' });
  let tried = 0;
  for (let seed = SEED; tried < 3; seed++) {
    const { ids } = recallPrompt(seed);
    if (ids.length > 900) continue;
    tried++;
    const texts = [wasm, reference].map(({ model }) => {
      const pages = range(64);
      return generate(model, greedy(prefillAll(model, ids, pages)), ids.length, pages, 40);
    });
    assert.deepEqual(texts[0], texts[1], `seed ${seed}`);
  }
});

test('a request next to other tenants’ pages answers as in a pool of its own', () => {
  const { ids } = recallPrompt(SEED);
  const pages = shuffledPages(new Prng(SEED), 300, Math.ceil((ids.length + 40) / 16));
  const answers = [false, true].map((poisoned) => {
    const role = newRole({ weights: lab });
    const first = greedy(prefillAll(role.model, ids, pages));
    if (poisoned) poison(role, new Set(pages));
    return generate(role.model, first, ids.length, pages, 40);
  });
  assert.deepEqual(answers[1], answers[0]);
});

test('a foreign page in the table does change the answer', () => {
  const { ids } = recallPrompt(SEED);
  const role = newRole({ weights: lab });
  const pages = range(Math.ceil((ids.length + 1) / 16));
  prefillAll(role.model, ids, pages);
  const item = { token: 97, position: ids.length, pages };
  const own = Float32Array.from(role.model.decode([item]));
  poison(role, new Set(pages.subarray(1)));
  assert.notDeepEqual(Float32Array.from(role.model.decode([item])), own);
});
