import { flagValue, switchOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { LLAMA_README, llamaIssue, unknownFlag } from './shared.js';

/** MiB, when nothing is said. */
const CACHE_RAM_DEFAULT = '8192';

export const promptCache: Rule = {
  meta: {
    id: 'sharing.prompt-cache',
    group: 'sharing',
    title: 'Slots and the prompt cache in memory are shared by all clients',
    severity: 'high',
    engines: ['llamacpp'],
    needs: ['flags'],
    why: 'llama-server has no salts: a request takes the slot whose prompt is most like its own, and idle prompts are kept in memory for all. A public report restored another conversation into a fresh slot in 20 of 20 rounds, with `cached_tokens` 0.',
    how: '`--cache-ram` above 0 (the default is 8192 MiB), or `--cache-prompt` on (the default).',
    change: 'One server for each tenant; else `--cache-ram 0 --no-cache-prompt`, and a build with the fix of #27624.',
    references: [llamaIssue(27148), llamaIssue(27624), LLAMA_README],
    aisvs: ['C5.5.5'],
    cwe: ['CWE-488', 'CWE-524'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const ram = flagValue(node, 'cache-ram', CACHE_RAM_DEFAULT);
    const prompt = switchOf(node, 'cache-prompt', true);
    if (ram === null) return unknownFlag(node, 'cache-ram');
    if (prompt === null) return unknownFlag(node, 'cache-prompt');
    if (ram.value !== '0') {
      return failed({
        at: ram.source,
        observed: `\`--cache-ram ${ram.value}\``,
        wanted: '`--cache-ram 0`',
        certain: false,
      });
    }
    if (!prompt.value) return passed('`--cache-ram 0 --no-cache-prompt`');
    return failed({
      severity: 'medium',
      title: 'Slots keep prompts for the next client',
      at: prompt.source,
      observed: '`--cache-prompt` is on',
      wanted: '`--no-cache-prompt`',
    });
  },
};
