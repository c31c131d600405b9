import { before } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { unknownVersion } from './shared.js';

/** The first release with pull request 1206, release candidates included. */
const FIXED = '0.9.0.dev0';

export const prefillFallback: Rule = {
  meta: {
    id: 'rejection.prefill-fallback',
    group: 'rejection',
    title: 'The sidecar lets decode answer what prefill refused',
    severity: 'high',
    engines: ['llmd-sidecar'],
    needs: ['version'],
    why: 'Before 0.9.0 an error of prefill is swallowed and the request goes on to decode. A prompt that prefill refuses for its length or for a full pool is then served by decode alone, past the limit that was meant for it.',
    how: 'The version of the sidecar’s image. That a refusal for length takes this way follows from the code and was not run.',
    change: 'Run the sidecar of llm-d-router 0.9.0 or newer, which passes prefill’s error to the client.',
    references: ['https://github.com/llm-d/llm-d-router/pull/1206'],
    aisvs: ['C5.3.1'],
    cwe: ['CWE-636'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const old = before(node, FIXED);
    if (node.version === null || old === null) return unknownVersion(node);
    if (!old) return passed(`${node.version.text} passes prefill’s error on`);
    return failed({
      at: node.versions[0]?.source ?? null,
      observed: `llm-d sidecar ${node.version.text}`,
      wanted: '0.9.0 or newer',
      certain: false,
    });
  },
};
