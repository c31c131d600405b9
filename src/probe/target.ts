/** What is probed: an OpenAI-compatible endpoint that the operator named, and the keys that the operator gave. */
export interface ProbeTenant {
  readonly name: string;
  /** Null: the endpoint knows no keys. Never recorded, printed or hashed into anything. */
  readonly key: string | null;
}

export const PROBE_ROUTES = ['completions', 'chat'] as const;
export type ProbeRoute = (typeof PROBE_ROUTES)[number];

export interface ProbeTarget {
  /** Ends before `/v1`: `http://127.0.0.1:8080`. */
  readonly origin: URL;
  readonly tenants: readonly ProbeTenant[];
  readonly model: string;
  readonly route: ProbeRoute;
}
