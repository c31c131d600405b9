import { best, poolOf, variableOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { hasConnector, noTransfer, transferOf, VLLM_NIXL, vllmIssue } from './shared.js';

const VARIABLE = 'VLLM_NIXL_ABORT_REQUEST_TIMEOUT';
/** Seconds that blocks nobody fetches are kept under a lease, when nothing is set. */
const LEASE_SECONDS_DEFAULT = 30;
/** One abandoned request of full length in this many seconds must not fill the pool. */
const ABANDONED_EVERY_SECONDS = 60;

export const leaseAgainstPool: Rule = {
  meta: {
    id: 'release.lease-against-pool',
    group: 'release',
    title: 'Prefill keeps abandoned blocks for so long that a few lost requests fill its pool',
    severity: 'medium',
    engines: ['vllm'],
    needs: ['transfer-config', 'variables', 'advertised', 'pool'],
    why: 'Blocks that decode never fetches stay until a lease or a timeout ends. Seven such requests took 89 % of a real pool, and the next tenant waited for a lease to run out.',
    how: `\`kv_lease_duration\` of the connector or \`${VARIABLE}\`, against how many requests of full length the pool holds: one abandoned a minute must not fill it.`,
    change: `Set \`"kv_lease_duration": 30\` in \`kv_connector_extra_config\`, and leave \`${VARIABLE}\` unset.`,
    references: [vllmIssue(41383), vllmIssue(25897), VLLM_NIXL],
    cwe: ['CWE-770'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    if (!hasConnector(transfer.value, /^Nixl/i)) return notApplicable(`its connector is ${transfer.value.connector}`);
    if (node.role === 'decode') return notApplicable('decode holds nothing for others');
    const answer = variableOf(node, VARIABLE);
    const given = transfer.value.extra.kv_lease_duration ?? (answer.state === 'set' ? answer.value : undefined);
    if (given === undefined && answer.state === 'unknown') return notChecked(`\`${VARIABLE}\` is not known`);
    const seconds = Number(given ?? LEASE_SECONDS_DEFAULT);
    if (given === null || Number.isNaN(seconds)) return notChecked('how long abandoned blocks are kept is not known');
    const context = best(node.advertised);
    const pool = poolOf(node);
    if (context === null || pool === null) return notChecked('context or pool is not known');
    const held = Math.ceil(seconds / ABANDONED_EVERY_SECONDS) * context.value;
    if (held <= pool.value.tokens) return passed(`${seconds} s, and the pool holds what is abandoned meanwhile`);
    return failed({
      at: transfer.source,
      observed: `kept for ${seconds} s; one abandoned request of ${context.value} tokens a minute holds ${held} of ${pool.value.tokens}`,
      wanted: `a lease of ${LEASE_SECONDS_DEFAULT} s`,
    });
  },
};
