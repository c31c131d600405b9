/** What experiments say: verdicts, hits, figures. */
/** In words of the report. `no-cache-seen`: there was nothing that could be shared, which counts neither way. */
export const EXPERIMENT_VERDICTS = [
  'isolated',
  'leaks',
  'starves',
  'no-power',
  'could-not-run',
  'no-cache-seen',
] as const;
export type ExperimentVerdict = (typeof EXPERIMENT_VERDICTS)[number];

/** One piece of another tenant's data in an answer: what an engine's maintainers would ask for. */
export interface Hit {
  readonly experiment: string;
  /** The answer that held it, and whose it was. */
  readonly request: string;
  readonly tenant: string;
  /** The tenant whose marker it is; null: of nobody in this run. */
  readonly owner: string | null;
  readonly marker: string | null;
  /** The request that planted the marker; null where it is not known. */
  readonly planted: string | null;
  readonly place: string;
  readonly offset: number;
  readonly length: number;
  readonly markerOffset: number;
  /** Milliseconds since the run began. */
  readonly sentMs: number;
  readonly endMs: number;
  /** Characters of the prompt that got it, and what the endpoint counted; null: not said. */
  readonly promptCharacters: number;
  readonly promptTokens: number | null;
  /** How long both requests were open together; 0: the planting one was over. Null: not known. */
  readonly overlapMs: number | null;
  /** Requests that were left within the last seconds before. */
  readonly leftBefore: readonly string[];
}

export interface ExperimentResult {
  readonly name: string;
  readonly verdict: ExperimentVerdict;
  /** Answers that were looked at. */
  readonly sent: number;
  readonly hits: number;
  /** The upper 95 % bound of the rate of hits: 0.0025 is 0.25 %; null where the experiment has no such rate. */
  readonly bound: number | null;
  /** What its control arm showed, in one sentence. */
  readonly control: string;
  /** One sentence each; figures and ids, no text. */
  readonly evidence: readonly string[];
  /** Figures for plots and for whoever checks: names to numbers or lists of them. */
  readonly figures?: Readonly<Record<string, number | readonly number[]>>;
  /** It was stopped before its end, so that a run that goes on makes it again. */
  readonly unfinished?: true;
}

/** One experiment in the plan of a run. */
export interface PlannedExperiment {
  readonly name: string;
  /** Whether the verdict of the run is drawn from it. */
  readonly required: boolean;
  /** Why it can't be run; null: it can. */
  readonly unfit: string | null;
  /** What it sends at most; seconds, or null where nothing was measured. */
  readonly plan: { readonly requests: number; readonly tokens: number; readonly seconds: number | null };
}

/** In plain words: what an experiment does, its control, what it can tell and what it can't. */
export interface Method {
  readonly does: string;
  readonly control: string;
  readonly tells: string;
  readonly limits: string;
}
