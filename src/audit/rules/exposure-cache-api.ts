import { variableOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';
import { cve, hasConnector, isActive, noTransfer, transferOf } from './shared.js';

const VARIABLE = 'LMCACHE_INTERNAL_API_SERVER_ENABLED';

export const cacheApi: Rule = {
  meta: {
    id: 'exposure.cache-api',
    group: 'exposure',
    title: 'LMCache’s internal API runs inside the engine',
    severity: 'high',
    engines: ['vllm'],
    needs: ['transfer-config', 'variables'],
    why: 'Up to LMCache 0.5.5 one POST to it runs code in the process that holds every tenant’s KV, without a key.',
    how: `\`${VARIABLE}\` in the environment of an engine with an LMCache connector.`,
    change: `Unset \`${VARIABLE}\`; where it is needed, let nobody but the operator reach its port.`,
    references: [cve('CVE-2026-107204')],
    cwe: ['CWE-306', 'CWE-94'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const transfer = transferOf(node);
    if (transfer === null) return noTransfer(node);
    if (!hasConnector(transfer.value, /^LMCache/)) return notApplicable(`its connector is ${transfer.value.connector}`);
    const answer = variableOf(node, VARIABLE);
    if (answer.state === 'unknown') return notChecked(`\`${VARIABLE}\` is not known`);
    if (answer.state === 'unset') return passed('it is not switched on');
    if (answer.value === null) return notChecked(`\`${VARIABLE}\` is set, to what is not known`);
    if (!isActive(answer.value)) return passed('it is switched off');
    return failed({ at: answer.source, observed: `\`${VARIABLE}=${answer.value}\``, wanted: 'unset', certain: false });
  },
};
