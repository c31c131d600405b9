/** Every scenario, in the order in which they run: those over the same engines are neighbours. */
import type { Scenario } from './scenario.js';
import { clients } from './scenarios/clients.js';
import { llamaPool } from './scenarios/llama-pool.js';
import { llamaProbe, nixlProbe, sglangProbe18, sglangProbe23 } from './scenarios/probes.js';
import { sglangAbort } from './scenarios/sglang-abort.js';
import { sglangHeld } from './scenarios/sglang-held.js';
import { sglangPd } from './scenarios/sglang-pd.js';
import { sglangRouter } from './scenarios/sglang-router.js';
import { vllmNixl } from './scenarios/vllm-nixl.js';
import { vllmPool } from './scenarios/vllm-pool.js';

export const SCENARIOS: readonly Scenario[] = [
  llamaPool,
  llamaProbe,
  clients,
  sglangPd,
  sglangRouter,
  sglangProbe18,
  sglangAbort,
  sglangHeld,
  sglangProbe23,
  vllmPool,
  vllmNixl,
  nixlProbe,
];
