import { escapeControl } from '../base/text.js';
import type { Report } from './report.js';

/** The same report with the unseen characters of every text as escapes. What is rendered has gone through here. */
export function escapeReport(report: Report): Report {
  return escapeTexts(report);
}

/** Goes as deep as the type does: reports are built by code or read by `parseReport`, never taken as they come. */
function escapeTexts<T>(value: T): T {
  if (typeof value === 'string') return escapeControl(value) as T;
  if (Array.isArray(value)) return value.map(escapeTexts) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, escapeTexts(inner)])) as T;
}
