import { escapeControl } from '../base/text.js';
import type { Report } from './report.js';

/** The same report with the unseen characters of every text as escapes. What is rendered has gone through here. */
export function escapeReport(report: Report): Report {
  return escapeTexts(report);
}

/** Goes as deep as the type does: reports are built by code or read by `parseReport`, never taken as they come. */
function escapeTexts<T>(value: T): T {
  if (typeof value === 'string') return escapeControl(value) as T;
  if (typeof value !== 'object' || value === null) return value;
  return (Array.isArray(value) ? escapeList(value) : escapeFields(value as Record<string, unknown>)) as T;
}

/** The list itself where nothing in it had to change: a report of thousands of nodes is mostly clean. */
function escapeList(list: readonly unknown[]): readonly unknown[] {
  const escaped = list.map(escapeTexts);
  return escaped.some((inner, index) => inner !== list[index]) ? escaped : list;
}

function escapeFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  let copy: Record<string, unknown> | null = null;
  for (const key of Object.keys(fields)) {
    const inner = escapeTexts(fields[key]);
    if (inner !== fields[key]) copy = { ...(copy ?? fields), [key]: inner };
  }
  return copy ?? fields;
}
