import { before, best, variableOf } from '../ask.js';
import { counterparts } from '../peers.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unlessPaired } from './shared.js';

/** Seconds that decode waits for a prefill that never speaks, when nothing is set. */
export const WAITING_SECONDS_DEFAULT = 300;
export const WAITING_VARIABLE = 'SGLANG_DISAGGREGATION_WAITING_TIMEOUT';

export const decodeNotTold: Rule = {
  meta: {
    id: 'rejection.decode-not-told',
    group: 'rejection',
    title: 'Decode accepts prompts that prefill refuses, and is not told',
    severity: 'high',
    engines: ['sglang'],
    needs: ['role', 'acceptLimit'],
    why: 'In every version read, 0.5.23 included, prefill does not tell decode that it refused at the door. Decode keeps pages for the whole prompt until a timeout; a few such prompts starve every other tenant.',
    how: 'The largest prompt served by prefill, below that of a decode node.',
    change: 'Give both roles pools above one context, and refuse longer prompts in front of the pair, before dispatch.',
    references: [sglangIssue(30233), sglangIssue(38935)],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-770', 'CWE-400'],
  },
  check(fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    if (node.role !== 'prefill') return notApplicable('asked of prefill nodes');
    const decodes = counterparts(fleet, node);
    const limit = best(node.acceptLimit);
    if (decodes.length === 0) return notChecked('no decode node was given');
    if (limit === null) return notChecked('the longest prompt that it accepts is not known');
    const limits = decodes.map((decode) => ({ decode, tokens: best(decode.acceptLimit)?.value ?? null }));
    const [first, ...more] = limits
      .filter(({ tokens }) => tokens !== null && tokens > limit.value)
      .map(({ decode, tokens }) => finding(node, decode, limit.value, tokens!));
    if (first !== undefined) return failed({ ...first, at: limit.source }, ...more);
    if (limits.some(({ tokens }) => tokens === null)) return notChecked('a decode node’s limit is not known');
    return passed(`no decode node accepts more than ${limit.value} tokens`);
  },
};

function finding(node: NodeFacts, decode: NodeFacts, prefill: number, tokens: number): Observed {
  const waiting = variableOf(decode, WAITING_VARIABLE);
  const seconds = waiting.state === 'set' && waiting.value !== null ? waiting.value : String(WAITING_SECONDS_DEFAULT);
  // Up to 0.5.19 the refusal itself is handed off; `rejection.handed-off` speaks of that.
  const fate =
    before(node, '0.5.20.dev0') === true
      ? `are answered by decode (${decode.name}) from stale pages`
      : `hold decode’s pages (${decode.name}) until a timeout`;
  return {
    title: `Prompts of ${prefill + 1} to ${tokens} tokens, which prefill refuses, ${fate}`,
    at: best(decode.acceptLimit)?.source ?? null,
    observed: `prefill accepts ${prefill}, ${decode.name} accepts ${tokens}, waiting timeout ${seconds} s`,
    wanted: 'a decode limit no larger than prefill’s',
  };
}
