/** Goal: the comparison that the public incident lacked, at its edges. Method: limits one by one, then any limits from a seed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AdmissionLimits, decideAdmission, effectiveLimit } from './admission.js';

const SEED = Number(process.env.SEED ?? 20_260_827);

test('the smallest of context - 1, prefill pool and decode pool is the limit, and is named', () => {
  const cases: [AdmissionLimits, number, string][] = [
    [{ context: 100, prefillPool: 200, decodePool: 200 }, 99, 'advertised context'],
    [{ context: 100, prefillPool: 50, decodePool: 200 }, 50, 'prefill pool'],
    [{ context: 100, prefillPool: 200, decodePool: 40 }, 40, 'decode pool'],
    [{ context: 100, prefillPool: 40, decodePool: 30 }, 30, 'decode pool'],
    [{ context: 100, prefillPool: 99, decodePool: 99 }, 99, 'advertised context'],
  ];
  for (const [limits, tokens, limitedBy] of cases) assert.deepEqual(effectiveLimit(limits), { tokens, limitedBy });
});

test('a capacity that is unknown, empty or no number admits nothing', () => {
  const known = { context: 100, prefillPool: 50, decodePool: 50 };
  for (const name of ['context', 'prefillPool', 'decodePool'] as const) {
    for (const value of [null, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1.5]) {
      assert.equal(effectiveLimit({ ...known, [name]: value }), null);
      assert.deepEqual(decideAdmission(1, 1, { ...known, [name]: value }), { kind: 'unknown' });
    }
  }
  assert.equal(effectiveLimit({ ...known, context: 1 }), null, 'a context of one token has no room for a prompt');
});

test('a prompt of limit - 1 and of limit is admitted, of limit + 1 it is refused', () => {
  const all: AdmissionLimits[] = [
    { context: 10, prefillPool: 100, decodePool: 100 },
    { context: 100, prefillPool: 9, decodePool: 100 },
    { context: 100, prefillPool: 100, decodePool: 9 },
  ];
  for (const limits of all) {
    assert.equal(decideAdmission(8, 1, limits).kind, 'admitted');
    assert.equal(decideAdmission(9, 1, limits).kind, 'admitted');
    const refused = decideAdmission(10, 1, limits);
    assert.deepEqual(refused, { kind: 'prompt-too-long', limit: effectiveLimit(limits) });
  }
});

test('prompt and output must fit the context together; nothing is clamped to it', () => {
  const limits = { context: 100, prefillPool: 1000, decodePool: 1000 };
  assert.equal(decideAdmission(60, 40, limits).kind, 'admitted');
  assert.deepEqual(decideAdmission(60, 41, limits), {
    kind: 'total-too-long',
    context: 100,
    limit: { tokens: 99, limitedBy: 'advertised context' },
  });
});

test('output is clamped only by the decode pool, which stores all but the last token', () => {
  const limits = { context: 100, prefillPool: 60, decodePool: 70 };
  const limit = { tokens: 60, limitedBy: 'prefill pool' as const };
  assert.deepEqual(decideAdmission(60, 11, limits), { kind: 'admitted', maxTokens: 11, clamped: false, limit });
  assert.deepEqual(decideAdmission(60, 12, limits), { kind: 'admitted', maxTokens: 11, clamped: true, limit });
  assert.deepEqual(decideAdmission(60, null, limits), { kind: 'admitted', maxTokens: 11, clamped: true, limit });
});

test('without a wish the output gets what is left of the context', () => {
  const limits = { context: 100, prefillPool: 1000, decodePool: 1000 };
  const verdict = decideAdmission(60, null, limits);
  assert.equal(verdict.kind === 'admitted' && verdict.maxTokens, 40);
});

const capacity = fc.option(fc.integer({ min: -2, max: 60 }), { nil: null });
const limitsOf = fc.record({ context: capacity, prefillPool: capacity, decodePool: capacity });

test(`what is admitted fits every node it may meet (seed ${SEED})`, () => {
  fc.assert(
    fc.property(
      limitsOf,
      fc.integer({ min: 1, max: 80 }),
      fc.option(fc.integer({ min: 1, max: 80 }), { nil: null }),
      (limits, prompt, wish) => {
        const verdict = decideAdmission(prompt, wish, limits);
        if (verdict.kind !== 'admitted') return;
        assert.ok(limits.context !== null && limits.prefillPool !== null && limits.decodePool !== null);
        assert.ok(prompt <= limits.prefillPool);
        assert.ok(prompt + verdict.maxTokens <= limits.context);
        assert.ok(prompt + verdict.maxTokens - 1 <= limits.decodePool);
        assert.ok(verdict.maxTokens >= 1);
        assert.equal(
          verdict.clamped,
          wish !== null ? verdict.maxTokens < wish : verdict.maxTokens < limits.context - prompt,
        );
      },
    ),
    { seed: SEED, numRuns: 2000 },
  );
});

test(`what is refused would not fit, and a shorter prompt is never refused where a longer one passes (seed ${SEED})`, () => {
  fc.assert(
    fc.property(limitsOf, fc.integer({ min: 1, max: 80 }), (limits, prompt) => {
      const verdict = decideAdmission(prompt, 1, limits);
      const { context, prefillPool, decodePool } = limits;
      const isKnown = [context, prefillPool, decodePool].every((value) => value !== null && value > 0);
      const fits = isKnown && prompt + 1 <= context! && prompt <= prefillPool! && prompt <= decodePool!;
      assert.equal(verdict.kind === 'admitted', fits);
      if (prompt > 1 && fits) assert.equal(decideAdmission(prompt - 1, 1, limits).kind, 'admitted');
    }),
    { seed: SEED, numRuns: 2000 },
  );
});
