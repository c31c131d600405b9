import { flagValue } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { FAILURE_MODE_FLAG } from '../gather/picker.js';
import { failed, notChecked, passed, type Rule, type RuleOutcome } from '../rule.js';

export const pickerFailsOpen: Rule = {
  meta: {
    id: 'exposure.picker-fails-open',
    group: 'exposure',
    title: 'Without the endpoint picker requests go to any pod of the pool',
    severity: 'medium',
    engines: ['llmd-epp'],
    needs: ['manifest'],
    why: 'While the picker is away the gateway takes any pod: prefill and decode alike, without a prefill target, and past what the picker would have decided for a tenant.',
    how: '`failureMode` of the InferencePool whose picker this is; `FailClose` where nothing is said. llm-d’s chart sets `FailOpen`.',
    change: 'Set `failureMode: FailClose` in the InferencePool (`router.inferencePool.failureMode` of llm-d’s chart).',
    references: ['https://gateway-api-inference-extension.sigs.k8s.io/api-types/inferencepool/'],
    cwe: ['CWE-636'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const said = node.flags.has(FAILURE_MODE_FLAG) ? flagValue(node, FAILURE_MODE_FLAG, '') : null;
    if (said === null) return notChecked('no InferencePool names its Service as picker; the manifests would tell it');
    if (!/^FailOpen$/i.test(said.value)) return passed(`\`failureMode\` is \`${said.value}\``);
    return failed({ at: said.source, observed: '`failureMode: FailOpen`', wanted: '`failureMode: FailClose`' });
  },
};
