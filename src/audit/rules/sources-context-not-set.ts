import { flagOf } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { sglangIssue, unknownFlag } from './shared.js';

const FLAGS: Readonly<Record<string, string>> = {
  sglang: 'context-length',
  vllm: 'max-model-len',
  llamacpp: 'ctx-size',
};

export const contextNotSet: Rule = {
  meta: {
    id: 'sources.context-not-set',
    group: 'sources',
    title: 'The context is the model’s own and moves with the model',
    severity: 'info',
    engines: ['sglang', 'vllm', 'llamacpp'],
    needs: ['flags'],
    why: 'Nobody chose the figure that clients are told. The next model, or its next configuration file, moves it past the pool without a word.',
    how: 'No `--context-length` (SGLang), `--max-model-len` (vLLM) or `--ctx-size` (llama-server) among the flags.',
    change: 'Set it (`--context-length N`, `--max-model-len N`, `-c N`) to what the pool holds with a margin.',
    references: [sglangIssue(30233)],
    cwe: ['CWE-1188'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const name = FLAGS[node.engine ?? ''] ?? 'context-length';
    const flag = flagOf(node, name);
    if (flag.state === 'unknown') return unknownFlag(node, name);
    if (flag.state === 'set' && flag.value !== null && !/^(?:0|None)$/.test(flag.value)) {
      return passed(`\`--${name} ${flag.value}\``);
    }
    return failed({ at: flag.source, observed: `no \`--${name}\``, wanted: `\`--${name}\` set` });
  },
};
