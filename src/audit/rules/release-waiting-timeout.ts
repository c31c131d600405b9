import { variableOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { WAITING_SECONDS_DEFAULT, WAITING_VARIABLE } from './rejection-decode-not-told.js';
import { sglangIssue, unknownVariable, unlessPaired } from './shared.js';

const VARIABLES: Readonly<Record<string, string>> = {
  decode: WAITING_VARIABLE,
  prefill: 'SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT',
};

export const waitingTimeout: Rule = {
  meta: {
    id: 'release.waiting-timeout',
    group: 'release',
    title: 'A request whose other half is gone keeps its pages for longer than the engine’s default',
    severity: 'medium',
    engines: ['sglang'],
    needs: ['role', 'variables'],
    why: 'While one side waits for the other it holds pages for the whole prompt. A longer wait lets fewer lost requests fill the pool for everybody.',
    how: `\`${WAITING_VARIABLE}\` on decode and \`SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT\` on prefill, above ${WAITING_SECONDS_DEFAULT} s.`,
    change: `Leave both at ${WAITING_SECONDS_DEFAULT} s or below; what is slow to arrive needs a queue in front of the pair, not a longer wait inside.`,
    references: [sglangIssue(30233), sglangIssue(38935)],
    cwe: ['CWE-400'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const stop = unlessPaired(node);
    if (stop !== null) return stop;
    const name = VARIABLES[node.role]!;
    const answer = variableOf(node, name);
    if (answer.state === 'unset') return passed(`\`${name}\` is not set: ${WAITING_SECONDS_DEFAULT} s`);
    const seconds = answer.state === 'set' ? Number(answer.value ?? Number.NaN) : Number.NaN;
    if (answer.state === 'unknown' || Number.isNaN(seconds)) return unknownVariable(name);
    if (seconds <= WAITING_SECONDS_DEFAULT) return passed(`\`${name}=${seconds}\``);
    return failed({
      at: answer.source,
      observed: `\`${name}=${seconds}\``,
      wanted: `${WAITING_SECONDS_DEFAULT} s at most`,
    });
  },
};
