import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownVersion } from './shared.js';

export const nightly: Rule = {
  meta: {
    id: 'version.nightly',
    group: 'version',
    title: 'A pre-release: what it holds is not what the release of its number holds',
    severity: 'info',
    engines: ['sglang', 'vllm', 'tensorrt-llm', 'lmcache', 'dynamo', 'mooncake'],
    needs: ['version'],
    why: 'A nightly carries the number of the next release and may be weeks older than it. This audit takes it to lack what that release brought.',
    how: 'A version with `.dev`, `a`, `b` or `rc`.',
    change: 'Run a release, or compare the commit of the build with that of the fix.',
    references: [sglangIssue(36988)],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const { version } = node;
    if (version === null) return unknownVersion(node);
    if (version.dev === null && version.pre === null) return passed(`${version.text} is a release`);
    const observed = `${version.text}, taken to come before ${version.release.join('.')}`;
    return failed({ at: node.versions[0]?.source ?? null, observed, wanted: 'a release' });
  },
};
