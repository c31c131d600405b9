/** The flags of `cofferdam probe` as the command line gives them. */
export interface ProbeFlags {
  readonly tenant?: readonly string[];
  readonly model?: string;
  readonly route?: string;
  readonly engine?: readonly string[];
  readonly advertised?: string;
  readonly only?: string;
  readonly budgetTokens?: string;
  readonly budgetRequests?: string;
  readonly together?: string;
  readonly maxDuration?: string;
  readonly price?: string;
  readonly bound?: string;
  readonly seed?: string;
  readonly keepText?: boolean;
  readonly allowDestructive?: boolean;
  readonly record?: string;
  readonly resume?: string;
  readonly repro?: string;
  readonly convert?: string;
  readonly config?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly output?: readonly string[];
}
