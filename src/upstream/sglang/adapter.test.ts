/**
 * Goal: one SGLang server and a prefill/decode pair keep the contract of all engines. Method: the shared cases over the embedded
 * engine, which speaks SGLang's dialect as one node and as a pair.
 */
import { after } from 'node:test';
import { runUpstreamCases } from '../../../test/cases/upstream.js';
import { type Double, pairDouble, singleDouble } from '../../../test/support/sglang-double.js';
import type { Upstream } from '../upstream.js';

const open: Double<Upstream>[] = [];
after(() => Promise.all(open.map((double) => double.close())));

async function of(made: Promise<Double<Upstream>>): Promise<Upstream> {
  const double = await made;
  open.push(double);
  return double.upstream;
}

runUpstreamCases('the adapter of one SGLang server', { make: () => of(singleDouble()) });
runUpstreamCases('the adapter of an SGLang pair', { make: () => of(pairDouble()) });
