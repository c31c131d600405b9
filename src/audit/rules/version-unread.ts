import { atLeast } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { unknownVersion } from './shared.js';

/** The newest version of each engine whose behaviour was read. */
export const READ_TO: Readonly<Record<string, string>> = { sglang: '0.5.23', vllm: '0.33.0' };

export const unread: Rule = {
  meta: {
    id: 'version.unread',
    group: 'version',
    title: 'The version is newer than what this audit was written from',
    severity: 'info',
    engines: ['sglang', 'vllm'],
    needs: ['version'],
    why: 'Flags, defaults and weaknesses of later versions are not known here: what passed may have changed since.',
    how: `Newer than ${Object.entries(READ_TO)
      .map(([engine, version]) => `${engine} ${version}`)
      .join(' or ')}.`,
    change: 'Read the engine’s release notes for changed defaults, and upgrade Cofferdam.',
    references: ['https://github.com/sgl-project/sglang/releases', 'https://github.com/vllm-project/vllm/releases'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const newest = READ_TO[node.engine ?? ''] ?? '';
    const known = atLeast(node, `${newest}.post1.dev0`);
    if (node.version === null || known === null) return unknownVersion(node);
    if (!known) return passed(`${node.version.text} is within what was read`);
    return failed({
      at: node.versions[0]?.source ?? null,
      observed: `${node.engine} ${node.version.text}`,
      wanted: `${newest} or older, for what is said here to be sure`,
    });
  },
};
