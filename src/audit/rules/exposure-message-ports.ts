import { flagOf } from '../ask.js';
import { reachOf } from '../exposure.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { failed, notApplicable, type Rule, type RuleOutcome } from '../rule.js';
import { cve, isShut, unknownFlag, unknownReach } from './shared.js';

/** Flags of SGLang and vLLM that open a port without a key: gRPC, KV events, load reports, the group of ranks. */
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  sglang: ['grpc-port', 'kv-events-config', 'load-publish-endpoint', 'dist-init-addr'],
  vllm: ['kv-events-config'],
};
const PORT = /(?:^|[^\d.])(?:[\w.*-]*:)?(\d{2,5})(?:"|\s|$|\}|,)/;

export const messagePorts: Rule = {
  meta: {
    id: 'exposure.message-ports',
    group: 'exposure',
    title: 'A message port without a key is reachable',
    severity: 'high',
    engines: ['sglang', 'vllm'],
    needs: ['flags', 'manifest'],
    why: 'gRPC, KV events, load reports and the ranks’ own sockets know no key. Events tell the hashes of what tenants send; some sockets of older versions unpickle what comes in.',
    how: '`--grpc-port`, `--kv-events-config`, `--load-publish-endpoint` or `--dist-init-addr`, against the manifests.',
    change: 'Let only peers reach these ports (NetworkPolicy), and drop the flags that are not needed.',
    references: [cve('CVE-2026-3059'), cve('CVE-2025-30202')],
    cwe: ['CWE-306'],
  },
  check(_fleet: Fleet, node: NodeFacts): RuleOutcome {
    const names = FLAGS[node.engine ?? ''] ?? [];
    let open: RuleOutcome | null = null;
    let used = 0;
    for (const name of names) {
      const flag = flagOf(node, name);
      if (flag.state === 'unknown') open ??= unknownFlag(node, name);
      if (flag.state !== 'set' || flag.value === null || flag.value === '') continue;
      if (/\b(?:127\.0\.0\.1|localhost)\b|^ipc:/.test(flag.value)) continue;
      used++;
      const port = Number(PORT.exec(flag.value)?.[1] ?? Number.NaN);
      if (Number.isNaN(port)) continue;
      const { reach, why, source } = reachOf(node, port);
      if (reach === 'unknown') open ??= unknownReach(port);
      else if (!isShut(reach)) {
        const severity = reach === 'outside' ? 'high' : 'medium';
        const observed = `\`--${name}\` (port ${port}): ${why}`;
        return failed({ severity, at: source, observed, wanted: `port ${port} reachable by its own peers only` });
      }
    }
    if (open !== null) return open;
    return used === 0
      ? notApplicable('it opens no such port beyond loopback')
      : { status: 'passed', why: 'only peers reach them' };
  },
};
