/** A configuration that is read again while it serves: validated whole first, then applied at once, or refused and nothing has changed. */
import { createHash } from 'node:crypto';
import { Counter, Gauge, type Registry } from 'prom-client';
import { unreachable } from '../base/assert.js';
import { CodedError } from '../base/errors.js';
import { shown } from '../base/text.js';
import type { Leaf } from '../config/settings.js';
import type { Finding } from '../findings/finding.js';
import type { ConfigFile, Refused } from './config-file.js';
import { overridden } from './config-file.js';
import type { ServeFlags } from './flags.js';
import type { ServeOptions } from './options.js';

/** Digits of the digest that is shown of a configuration. */
const FINGERPRINT_DIGITS = 12;

export const RELOAD_OUTCOMES = ['applied', 'unchanged', 'invalid', 'restart-needed'] as const;
export type ReloadOutcome = (typeof RELOAD_OUTCOMES)[number];

/** What was read, and what flags make of it. */
export interface Loaded {
  readonly file: ConfigFile;
  readonly options: ServeOptions;
}

export interface ReloadParts {
  readonly flags: ServeFlags;
  readonly load: () => Loaded | Refused;
  /** Throws CodedError `usage`, and then nothing has changed. */
  readonly apply: (options: ServeOptions) => void;
  /** One line each. */
  readonly log: (line: string) => void;
  readonly findings: { record(finding: Finding): unknown };
  readonly registry: Registry;
}

/** Of everything that holds, keys as their digests: two servers with the same one are configured alike. */
export function configFingerprint(options: ServeOptions): string {
  const { warnings: _warnings, ...rest } = options;
  return createHash('sha256').update(JSON.stringify(rest)).digest('hex').slice(0, FINGERPRINT_DIGITS);
}

export class ConfigReloader {
  readonly #parts: ReloadParts;
  readonly #reloads: Counter;
  readonly #info: Gauge;
  #loaded: Loaded;
  /** Files with keys that the last try named, refused or not. */
  #keyFiles: readonly string[];

  constructor(parts: ReloadParts, loaded: Loaded) {
    this.#parts = parts;
    this.#loaded = loaded;
    this.#keyFiles = loaded.file.keyFiles;
    const registers = [parts.registry];
    this.#reloads = new Counter({
      name: 'cofferdam_config_reloads_total',
      help: 'Times that the configuration was read again, by what came of it',
      labelNames: ['outcome'],
      registers,
    });
    for (const outcome of RELOAD_OUTCOMES) this.#reloads.inc({ outcome }, 0);
    this.#info = new Gauge({
      name: 'cofferdam_config_info',
      help: 'The configuration that holds, by its fingerprint',
      labelNames: ['fingerprint'],
      registers,
    });
    this.#show();
  }

  /** The configuration that holds. */
  get loaded(): Loaded {
    return this.#loaded;
  }

  /** The files that a change of is worth another try. */
  get files(): readonly string[] {
    return [this.#loaded.file.path, ...new Set([...this.#loaded.file.keyFiles, ...this.#keyFiles])];
  }

  /** Reads the file again. What came of it is logged, counted, and a finding where it was refused. */
  reload(why: 'SIGHUP' | 'change'): ReloadOutcome {
    const outcome = this.#reload();
    // The watch looks once more than there are changes; that is nobody's news.
    if (outcome !== 'unchanged' || why === 'SIGHUP') this.#reloads.inc({ outcome });
    if (outcome === 'applied' || (outcome === 'unchanged' && why === 'SIGHUP')) {
      const { path } = this.#loaded.file;
      const said = outcome === 'applied' ? 'is applied' : 'says what it said before';
      this.#parts.log(`configuration: ${shown(path)} ${said}, fingerprint ${configFingerprint(this.#loaded.options)}`);
    }
    return outcome;
  }

  #reload(): ReloadOutcome {
    const next = this.#load();
    this.#keyFiles = 'lines' in next ? next.keyFiles : next.file.keyFiles;
    if ('lines' in next) {
      this.#refuse('invalid', next.lines, next.line);
      return 'invalid';
    }
    if (configFingerprint(next.options) === configFingerprint(this.#loaded.options)) {
      this.#loaded = next;
      return 'unchanged';
    }
    const fixed = fixedDifferences(this.#loaded.file.leaves, next.file.leaves, this.#parts.flags);
    if (fixed.length === 0) fixed.push(...fixedSecrets(this.#loaded.options, next.options));
    if (fixed.length > 0) {
      const line = `${next.file.path}: a restart is needed for ${fixed.map((path) => `\`${path}\``).join(', ')}`;
      this.#refuse('restart-needed', [line], 1);
      return 'restart-needed';
    }
    const problem = this.#apply(next);
    if (problem !== null) {
      this.#refuse('invalid', [`${next.file.path}: ${problem}`], 1);
      return 'invalid';
    }
    this.#loaded = next;
    this.#show();
    return 'applied';
  }

  /** A file may be fine by itself and wrong under the flags. */
  #load(): Loaded | Refused {
    try {
      return this.#parts.load();
    } catch (thrown) {
      if (thrown instanceof CodedError) return { lines: [thrown.message], line: 1, keyFiles: [] };
      throw thrown;
    }
  }

  #apply(next: Loaded): string | null {
    try {
      this.#parts.apply(next.options);
      return null;
    } catch (thrown) {
      if (thrown instanceof CodedError) return thrown.message;
      throw thrown;
    }
  }

  #refuse(outcome: 'invalid' | 'restart-needed', lines: readonly string[], line: number): void {
    const { log, findings } = this.#parts;
    const { path } = this.#loaded.file;
    for (const each of lines) log(`configuration: ${each}`);
    log(`configuration: ${shown(path)} is refused whole, and what held before goes on`);
    findings.record(refusalFinding(outcome, path, lines, line));
  }

  #show(): void {
    this.#info.reset();
    this.#info.set({ fingerprint: configFingerprint(this.#loaded.options) }, 1);
  }
}

/** The fields that differ, hold in spite of the flags, and can't change while it runs. */
function fixedDifferences(before: readonly Leaf[], after: readonly Leaf[], flags: ServeFlags): string[] {
  const isOverridden = overridden(flags);
  const texts = (leaves: readonly Leaf[]): Map<string, string> =>
    new Map(
      leaves
        .filter(({ live, field }) => !live && (field.flag === undefined || !isOverridden(field.flag)))
        .map(({ path, value }) => [path, JSON.stringify(value) ?? '']),
    );
  const old = texts(before);
  const now = texts(after);
  return [...new Set([...old.keys(), ...now.keys()])].filter((path) => old.get(path) !== now.get(path));
}

/** Secrets are named by where they are to be found: what is found there may change while the file stays as it is. */
function fixedSecrets(before: ServeOptions, after: ServeOptions): string[] {
  const differ = (one: unknown, other: unknown): boolean => JSON.stringify(one) !== JSON.stringify(other);
  return [
    ...(differ(before.running.secret, after.running.secret) ? ['secret'] : []),
    ...after.upstreams.flatMap(({ key }, index) =>
      differ(before.upstreams[index]?.key ?? null, key) ? [`upstreams[${index}].key`] : [],
    ),
  ];
}

function refusalFinding(
  outcome: 'invalid' | 'restart-needed',
  path: string,
  lines: readonly string[],
  line: number,
): Finding {
  const common = {
    where: { node: 'gateway', source: path, line },
    references: ['docs/CONFIGURATION.md'],
    certain: true,
    severity: 'medium',
    wanted: 'a file that says what the server does',
  } as const;
  switch (outcome) {
    case 'invalid':
      return {
        ...common,
        id: 'config.invalid',
        title: 'The configuration was changed and refused: the server goes on with the one before',
        observed: `${lines.length} ${lines.length === 1 ? 'mistake' : 'mistakes'}; ${lines[0] ?? ''}`,
        change: 'Correct the file; saving it, or SIGHUP, has it read again.',
      };
    case 'restart-needed':
      return {
        ...common,
        id: 'config.restart-needed',
        title: 'The configuration was changed in what only a restart applies: the server goes on with the one before',
        observed: lines[0] ?? '',
        change: 'Restart the server, or take those changes back: until then nothing of the file is applied.',
      };
    default:
      return unreachable(outcome);
  }
}
