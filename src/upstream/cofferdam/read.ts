/** Cofferdam's own engine and gateway: SGLang's answers, and a block of their own. */
import { parsePrometheus } from '../prometheus.js';
import type { Fact, Reading } from '../reading.js';
import { readServerInfo } from '../sglang/read.js';
import { asList, asShape, asText, field } from '../shapes.js';

const VERSION_PREFIX = 'cofferdam-';

/** `GET /server_info` of the embedded engine. */
export function readOwnServerInfo(json: unknown): Reading | null {
  const info = asShape(json);
  if (info === null) return null;
  const version = asText(field(info, 'version'));
  const own = asShape(field(info, 'cofferdam'));
  if (own === null && version?.startsWith(VERSION_PREFIX) !== true) return null;
  const reading = readServerInfo(json);
  if (reading === null) return null;
  const facts = reading.facts
    .filter((fact) => fact.kind !== 'flag' || fact.name !== 'cofferdam')
    .map((fact) => (fact.kind === 'version' ? { ...fact, text: fact.text.replace(VERSION_PREFIX, '') } : fact));
  return {
    engine: 'cofferdam',
    facts:
      own === null ? facts : [...facts, ...names(own, 'faults', 'fault'), ...names(own, 'guards_off', 'guard-off')],
  };
}

function names(own: Record<string, unknown>, from: string, flag: string): Fact[] {
  const list = asList(field(own, from)).slice(0, 64).map(asText);
  return [{ kind: 'flag', name: flag, value: list.filter(Boolean).join(' '), form: 'resolved' }];
}

/** `GET /metrics`; null without one of Cofferdam's. */
export function readMetrics(text: string): Reading | null {
  if (!text.includes('cofferdam_')) return null;
  const samples = parsePrometheus(text, (name) => name.startsWith('cofferdam_'));
  if (samples.length === 0) return null;
  return { engine: 'cofferdam', facts: samples.map((sample) => ({ kind: 'sample', ...sample })) };
}
