import { compareVersions, parseVersion } from '../../upstream/version.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notChecked, type Rule, type RuleOutcome } from '../rule.js';
import { unknownVersion } from './shared.js';

/** The version that it was measured on. */
const MEASURED = '1.4.1';

export const cancelNotPassed: Rule = {
  meta: {
    id: 'release.cancel-not-passed',
    group: 'release',
    title: 'A client that leaves before the first token does not stop the remote prefill',
    severity: 'medium',
    engines: ['dynamo'],
    needs: ['version'],
    why: 'On 1.4.1 no abort reached an engine: the prefill queue was blocked for 55 s (vLLM), 13 s (TensorRT-LLM) and 11 s (SGLang) by requests that nobody waited for. One tenant that connects and leaves takes the pool from the others.',
    how: 'The version of the frontend’s image. The report is open; other versions were not measured.',
    change:
      'Put a gateway in front that bounds what each tenant has in flight, and counts a request until its prefill has ended.',
    references: ['https://github.com/ai-dynamo/dynamo/issues/14507'],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-400'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    if (node.version === null) return unknownVersion(node);
    if (compareVersions(node.version, parseVersion(MEASURED)!) !== 0) {
      return notChecked(`it was measured on ${MEASURED}; of ${node.version.text} nothing is known`);
    }
    return failed({
      at: node.versions[0]?.source ?? null,
      observed: `Dynamo ${node.version.text}`,
      wanted: 'a disconnect that reaches the prefill worker',
    });
  },
};
