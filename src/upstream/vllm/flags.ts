/** What single flags of vLLM say of a node. */
import type { Fact, FlagForm } from '../reading.js';
import { tokensOf } from '../shapes.js';
import { humanTokens, readTransferConfig, vllmRole } from './read.js';

/** The flag itself, and the figures and roles that follow from it. `value` as it was written. */
export function flagFactsOf(name: string, value: string | null, form: FlagForm, line: number): Fact[] {
  const facts: Fact[] = [{ kind: 'flag', name, value, form, line }];
  if (value === null) return facts;
  switch (name) {
    case 'max-model-len': {
      const tokens = humanTokens(value);
      if (tokens !== null) facts.push({ kind: 'advertised', tokens, line });
      break;
    }
    case 'kv-transfer-config':
      facts.push(...transferFacts(value, line));
      break;
    case 'block-size': {
      const tokens = tokensOf(value);
      if (tokens !== null) facts.push({ kind: 'page', tokens, line });
      break;
    }
    case 'served-model-name':
      facts.push({ kind: 'model', name: value.split(' ')[0]!.replaceAll(/[[\]',"]/g, ''), line });
      break;
    default:
  }
  return facts;
}

/** JSON on a command line; in a log a dataclass as Python prints it. */
function transferFacts(value: string, line: number): Fact[] {
  const config = readTransferConfig(parsed(value)) ?? fromPython(value);
  if (config === null) return [];
  const facts: Fact[] = [{ kind: 'transfer-config', config, line }];
  const role = vllmRole(config);
  if (role !== 'unknown') facts.push({ kind: 'role', role, line });
  return facts;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function fromPython(text: string): ReturnType<typeof readTransferConfig> {
  const pick = (name: string): string | null =>
    new RegExp(`\\b${name}['"]?\\s?[=:]\\s?['"]([\\w.:/-]{1,200})['"]`).exec(text)?.[1] ?? null;
  const connector = pick('kv_connector');
  if (connector === null) return null;
  return {
    connector,
    role: pick('kv_role'),
    loadFailurePolicy: pick('kv_load_failure_policy'),
    ip: pick('kv_ip'),
    port: null,
    extra: {},
    inner: [],
  };
}
