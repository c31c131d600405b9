import { flagValue } from '../ask.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, type Observed, passed, type Rule, type RuleOutcome } from '../rule.js';
import { isActive, LLAMA_README, SGLANG_ARGUMENTS, unknownFlag } from './shared.js';

/** Flags that write what tenants send. */
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  sglang: ['log-requests', 'crash-dump-folder', 'export-metrics-to-file'],
  vllm: ['enable-log-requests', 'enable-log-outputs'],
  llamacpp: ['log-prompts-dir'],
};

/** Level 0 logs metadata only. */
function logsContent(node: NodeFacts, name: string): boolean {
  return name !== 'log-requests' || flagValue(node, 'log-requests-level', '2')?.value !== '0';
}

export const requestLogs: Rule = {
  meta: {
    id: 'exposure.request-logs',
    group: 'exposure',
    title: 'Prompts and answers are written to logs or files',
    severity: 'low',
    engines: ['sglang', 'vllm', 'llamacpp'],
    needs: ['flags'],
    why: 'Whoever reads logs reads all tenants, for as long as logs are kept, outside every border between tenants.',
    how: '`--log-requests` above level 0, `--crash-dump-folder`, `--export-metrics-to-file` (SGLang); `--enable-log-requests`, `--enable-log-outputs` (vLLM); `--log-prompts-dir` (llama-server).',
    change: 'Drop the flag, or keep metadata only (`--log-requests-level 0`).',
    references: [SGLANG_ARGUMENTS, LLAMA_README],
    cwe: ['CWE-532'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const names = FLAGS[node.engine ?? ''] ?? [];
    const said = names.map((name) => ({ name, value: flagValue(node, name, '') }));
    const [first, ...more] = said.flatMap(({ name, value }): Observed[] =>
      value !== null && isActive(value.value) && logsContent(node, name)
        ? [{ at: value.source, observed: `\`--${name}\``, wanted: 'no content of tenants in logs' }]
        : [],
    );
    if (first !== undefined) return failed(first, ...more);
    const open = said.find(({ value }) => value === null);
    return open === undefined ? passed('no flag that writes prompts is set') : unknownFlag(node, open.name);
  },
};
