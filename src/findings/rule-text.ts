/** What a renderer may say of a rule, beside what its findings say. Written by us: not from a target. */
export interface RuleText {
  readonly id: string;
  /** One line: the condition that it looks for. */
  readonly title: string;
  /** Why it matters. */
  readonly why: string;
  readonly change: string;
  readonly references: readonly string[];
}
