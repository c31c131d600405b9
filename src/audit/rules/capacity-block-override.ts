import { atLeast, flagOf, signOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { unknownFlag, vllmIssue } from './shared.js';

/** The first version seen to compare an overridden count with the context at the start. */
const CHECKED_FROM = '0.32.0';

export const blockOverride: Rule = {
  meta: {
    id: 'capacity.block-override',
    group: 'capacity',
    title: 'The number of KV blocks is overridden by hand',
    severity: 'medium',
    engines: ['vllm'],
    needs: ['flags', 'log', 'version'],
    why: 'The start used to compare the context with memory and not with the overridden count: such a server starts, and a prompt above the pool hangs for ever with everyone behind it.',
    how: '`--num-gpu-blocks-override`, the label of `vllm:cache_config_info`, or the line `Overriding num_gpu_blocks=` of the log.',
    change:
      'Remove `--num-gpu-blocks-override`; bound memory with `--gpu-memory-utilization` or `--kv-cache-memory-bytes`.',
    references: [vllmIssue(27181), vllmIssue(41069), vllmIssue(47272)],
    cwe: ['CWE-770'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const flag = flagOf(node, 'num-gpu-blocks-override');
    const sign = signOf(node, 'block-count-overridden');
    const set = flag.state === 'set' && flag.value !== null && flag.value !== 'None';
    if (!set && sign === null) {
      return flag.state === 'unknown'
        ? unknownFlag(node, 'num-gpu-blocks-override')
        : passed('the count is the engine’s own');
    }
    const checked = atLeast(node, CHECKED_FROM) === true;
    return failed({
      severity: checked ? 'info' : 'medium',
      at: flag.state === 'set' && set ? flag.source : (sign?.source ?? null),
      observed:
        flag.state === 'set' && set
          ? `\`--num-gpu-blocks-override ${flag.value}\``
          : 'the log says that the count is overridden',
      wanted: checked
        ? 'a reason for it: this version refuses to start when the context does not fit'
        : 'the engine’s own count',
    });
  },
};
