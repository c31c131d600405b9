/** What an InferencePool says of its endpoint picker. */
import type { Fact, Reading } from '../../upstream/reading.js';
import type { Exposure } from '../facts.js';
import type { Piece } from './piece.js';
import { dig, textAt } from './tree.js';
import type { Tree } from './yaml-tree.js';

/** Stands among the flags of the picker; no program has it. */
export const FAILURE_MODE_FLAG = 'pool-failure-mode';

/** The picker's Service and the mode: `endpointPickerRef` (`extensionRef` before v1), which fails closed where nothing is said. */
export function failureModeOf(tree: Tree): [string, string][] {
  if (textAt(tree, 'kind') !== 'InferencePool') return [];
  const picker = dig(tree, 'spec', 'endpointPickerRef') ?? dig(tree, 'spec', 'extensionRef');
  const name = textAt(picker, 'name');
  return name === null ? [] : [[name, textAt(picker, 'failureMode') ?? 'FailClose']];
}

/** The picker is known by the Services that lead to it. */
export function withFailureMode(
  exposure: Exposure,
  reading: Reading,
  modes: ReadonlyMap<string, string>,
): Pick<Piece, 'exposure' | 'reading'> {
  const mode =
    reading.engine === 'llmd-epp'
      ? exposure.services.map(({ name }) => modes.get(name)).find((one) => one !== undefined)
      : undefined;
  if (mode === undefined) return { exposure, reading };
  const fact: Fact = { kind: 'flag', name: FAILURE_MODE_FLAG, value: mode, form: 'given' };
  return { exposure, reading: { ...reading, facts: [...reading.facts, fact] } };
}
