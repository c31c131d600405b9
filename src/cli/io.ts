/** What a verb may do to the world outside: write, and read the environment. Tests hand in one that remembers. */
export interface CliIo {
  /** Standard output: results, and with `--output json` nothing else. */
  out(text: string): void;
  /** Standard error: warnings and errors. */
  err(text: string): void;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly outIsTerminal: boolean;
  /** Whether standard error is a terminal; absent: it is none. */
  readonly errIsTerminal?: boolean;
  /** Asks whoever sits at the terminal; resolves with the line, null where it ended. Absent: nobody can be asked. */
  readonly ask?: (question: string) => Promise<string | null>;
}

/** Exit codes everywhere: clean, findings, wrong usage, what was required could not be checked or done. */
export const EXIT = { clean: 0, findings: 1, usage: 2, unchecked: 3 } as const;
