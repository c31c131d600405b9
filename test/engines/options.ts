/** The command line of `npm run test:engines`. */
import { parseArgs } from 'node:util';
import { defaultFolder } from './folder.js';
import { type Scenario, type Side, SIDES } from './scenario.js';

export interface Options {
  readonly names: readonly string[];
  readonly sides: readonly Side[];
  readonly folder: string;
  readonly output: 'table' | 'json';
  readonly seed: number;
}

type Parsed =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly why: string };

const SEED = 9000;

export function HELP(scenarios: readonly Scenario[]): string {
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  return [
    'npm run test:engines [-- NAME... OPTIONS]',
    '',
    ...scenarios.map(({ name, engines, title }) => `  ${name.padEnd(width)}  ${engines}: ${title}`),
    '',
    '  --side direct|through   one side alone: the engine as it is, or Cofferdam in front (both)',
    '  --folder DIR            engines, models and logs ($COFFERDAM_ENGINES, else a folder of the cache); some 12 GB for all',
    '  --seed N                where chance begins (9000)',
    '  --output table|json     (table)',
    '',
  ].join('\n');
}

export function parseOptions(args: readonly string[], scenarios: readonly Scenario[]): Parsed {
  const wrong = (why: string): Parsed => ({ kind: 'wrong', why });
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        side: { type: 'string' },
        folder: { type: 'string' },
        output: { type: 'string' },
        seed: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
    if (values.help === true) return { kind: 'help' };
    const known = scenarios.map(({ name }) => name);
    const unknown = positionals.find((name) => !known.includes(name));
    if (unknown !== undefined) return wrong(`Expected names among ${known.join(', ')}, got ${unknown}`);
    const { side, output = 'table', seed = String(SEED) } = values;
    const sides = side === undefined ? SIDES : SIDES.filter((each) => each === side);
    if (sides.length === 0) return wrong(`Expected --side direct or through, got ${side}`);
    if (output !== 'table' && output !== 'json') return wrong(`Expected --output table or json, got ${output}`);
    if (!/^\d{1,9}$/.test(seed)) return wrong(`Expected --seed to be a whole number, got ${seed}`);
    const names = positionals.length === 0 ? known : positionals;
    const folder = values.folder ?? defaultFolder();
    return { kind: 'run', options: { names, sides, folder, output, seed: Number(seed) } };
  } catch (thrown) {
    return wrong(thrown instanceof Error ? thrown.message : String(thrown));
  }
}
