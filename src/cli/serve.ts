import { existsSync } from 'node:fs';
import { type ConfigFile, loadConfig, overridden, type Refused } from './config-file.js';
import { CONFIG_FILE } from './config-shape.js';
import { boundsOf } from './config-bounds.js';
import type { Loaded } from './config-reload.js';
import type { ServeFlags } from './flags.js';
import { type CliIo, EXIT } from './io.js';
import { type OptionWorld, parseServeOptions, type ServeOptions } from './options.js';
import type { ServeConfig } from './serve-run.js';
import { isWorker } from './worker-line.js';

/** `cofferdam serve`; resolves with the exit code. What serves is loaded when there is something to serve. */
export async function serve(flags: ServeFlags, faultNames: readonly string[], io: CliIo): Promise<number> {
  const world: OptionWorld = { variables: io.variables, faultNames };
  const path = flags.config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : null);
  if (path === null) {
    const options = parseServeOptions(flags, world);
    if (!isWorker()) for (const warning of options.warnings) io.err(`warning: ${warning}\n`);
    return await run(options, null, io);
  }
  const load = (): Loaded | Refused => loadWhole(path, flags, world);
  const loaded = load();
  if ('lines' in loaded) {
    for (const line of loaded.lines) io.err(`error: ${line}\n`);
    return EXIT.usage;
  }
  if (!isWorker())
    for (const warning of [...loaded.options.warnings, ...overrides(loaded.file, flags)])
      io.err(`warning: ${warning}\n`);
  return await run(loaded.options, { loaded, load, flags }, io);
}

async function run(options: ServeOptions, config: ServeConfig | null, io: CliIo): Promise<number> {
  if (options.running.workers > 1 && !isWorker()) return await (await import('./workers.js')).runWorkers(options, io);
  const { runServe, runWorker } = await import('./serve-run.js');
  return isWorker() ? await runWorker(options, config, io) : await runServe(options, config, io);
}

/** The file under the flags. Throws CodedError `usage` where they do not fit together. */
function loadWhole(path: string, flags: ServeFlags, world: OptionWorld): Loaded | Refused {
  const file = loadConfig(path, { variables: world.variables, flags });
  if ('lines' in file) return file;
  return { file, options: parseServeOptions(flags, world, { ...file, bounds: boundsOf(file.leaves) }) };
}

/** Which flags take the place of what the file says. */
function overrides(file: ConfigFile, flags: ServeFlags): string[] {
  const isOverridden = overridden(flags);
  const engines = flags.upstream !== undefined && file.upstreams.length > 0;
  const replaced = engines ? [`\`--upstream\` overrides \`upstreams\` of ${file.path}`] : [];
  const leaves = file.leaves
    .filter(({ given, field }) => given && field.flag !== undefined && isOverridden(field.flag))
    .map(({ path, field }) => `\`${field.flag}\` overrides \`${path}\` of ${file.path}`);
  return [...replaced, ...leaves];
}
