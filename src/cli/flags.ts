/** The flags as the command line gives them: texts, before anything is checked. Names are those of the options, in camel case. */
export interface SizeFlags {
  readonly context?: string;
  readonly prefillPool?: string;
  readonly decodePool?: string;
  readonly pageSize?: string;
  readonly maxRunning?: string;
  /** False: `--no-prefix-cache`. */
  readonly prefixCache?: boolean;
  readonly zeroOnRelease?: boolean;
}

export interface FaultFlags {
  readonly fault?: readonly string[];
  readonly guards?: string;
  readonly guardOff?: readonly string[];
  readonly seed?: string;
}

export interface ServeFlags extends SizeFlags, FaultFlags {
  readonly host?: string;
  readonly port?: string;
  readonly opsPort?: string;
  readonly opsKey?: string;
  readonly tenant?: readonly string[];
  readonly upstream?: readonly string[];
  readonly engineKey?: string;
  readonly tokenizer?: string;
  readonly upstreamLimit?: string;
  readonly upstreamCa?: string;
  readonly wait?: boolean;
  readonly workers?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly secret?: string;
  readonly usage?: string;
  readonly onSmallPool?: string;
  readonly trace?: string;
  readonly config?: string;
  readonly output?: string;
}

export interface MarkerFlags {
  readonly config?: string;
  readonly secret?: string;
  readonly period?: string;
  readonly index?: string;
  readonly count?: string;
  readonly output?: string;
}

export interface InitFlags {
  readonly force?: boolean;
  readonly output?: string;
}

export interface EngineFlags extends SizeFlags, FaultFlags {
  readonly host?: string;
  readonly port?: string;
  readonly prefillPort?: string;
  readonly decodePort?: string;
  readonly trace?: string;
  readonly output?: string;
}

export interface ReplayFlags {
  readonly list?: boolean;
  readonly matrix?: boolean;
  readonly full?: boolean;
  readonly trace?: string;
  readonly guards?: string;
  readonly guardOff?: readonly string[];
  readonly seed?: string;
  readonly output?: string;
}

export interface AuditFlags {
  readonly command?: readonly string[];
  readonly pool?: readonly string[];
  readonly advertised?: string;
  readonly apiKeyEnv?: readonly string[];
  readonly header?: readonly string[];
  readonly wait?: string;
  readonly baseline?: string;
  readonly waivers?: string;
  readonly convert?: string;
  readonly failOn?: string;
  readonly require?: readonly string[];
  readonly output?: readonly string[];
}

export interface VerifyFlags {
  readonly scope?: string;
  readonly fault?: string;
  readonly allFaults?: boolean;
  readonly guards?: string;
  readonly trace?: string;
  readonly simulate?: boolean;
  readonly seed?: string;
  readonly steps?: string;
  readonly requests?: string;
  readonly duration?: string;
  readonly without?: string;
  readonly traceOut?: string;
  readonly symmetry?: boolean;
  readonly memory?: string;
  readonly output?: string;
}

export interface LabFlags {
  readonly format?: string;
  readonly context?: string;
  readonly force?: boolean;
  readonly output?: string;
}
