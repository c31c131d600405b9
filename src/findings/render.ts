import { renderHtml } from './render-html.js';
import { renderReportJson, renderReportJsonl } from './render-json.js';
import { renderJunit } from './render-junit.js';
import { renderReportTable } from './render-report-table.js';
import { renderSarif } from './render-sarif.js';
import type { TableOptions } from './render-table.js';
import type { Report } from './report.js';
import type { RuleText } from './rule-text.js';

export const OUTPUT_FORMATS = ['table', 'json', 'jsonl', 'sarif', 'junit', 'html'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export interface RenderOptions extends TableOptions {
  /** What SARIF says of each rule. */
  readonly rules?: readonly RuleText[];
}

/** The report in one format, as a text that ends with a line break. Pure: the same report gives the same text. */
export function renderReport(report: Report, format: OutputFormat, options: RenderOptions = {}): string {
  switch (format) {
    case 'table':
      return renderReportTable(report, options);
    case 'json':
      return renderReportJson(report);
    case 'jsonl':
      return renderReportJsonl(report);
    case 'sarif':
      return renderSarif(report, options.rules);
    case 'junit':
      return renderJunit(report);
    case 'html':
      return renderHtml(report);
  }
}
