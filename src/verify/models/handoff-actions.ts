/** What can happen in the handoff's world, in a fixed order. */
import type { ActionKind } from '../model.js';
import type { HandoffScope } from './handoff-scope.js';

export const ACTION_KEYS = [
  'deliver',
  'repeat',
  'lose',
  'land',
  'tear',
  'submit',
  'clientGone',
  'prefillAdmit',
  'prefillHit',
  'compute',
  'abandon',
  'prefillEvict',
  'decodeAdmit',
  'decodeHit',
  'attach',
  'verify',
  'readBegin',
  'readEnd',
  'finish',
  'decodeEvict',
  'gatewayTimer',
  'prefillTimer',
  'decodeTimer',
  'timeout',
  'prefillRestart',
  'decodeRestart',
  'gatewayLearnsPrefill',
  'gatewayLearnsDecode',
  'decodeLearnsPrefill',
  'prefillLearnsDecode',
] as const;
export type ActionKey = (typeof ACTION_KEYS)[number];

interface Kind {
  readonly key: ActionKey;
  readonly name: string;
  /** Not the system's doing, but the world's: it may never happen, and nobody may have to wait for it. */
  readonly isWorld?: true;
  /** The scope holds it; left out: every scope does. */
  readonly when?: (scope: HandoffScope) => boolean;
}

const crashes = ({ prefillCrashes }: HandoffScope): boolean => prefillCrashes > 0;
const decodeCrashes = (scope: HandoffScope): boolean => scope.decodeCrashes > 0;
const prefixes = (scope: HandoffScope): boolean => scope.prefixes;
/** Something on the wire can go missing, so that somebody has to ask again. */
const drops = (scope: HandoffScope): boolean => scope.losses > 0;

const KINDS: readonly Kind[] = [
  { key: 'deliver', name: 'deliver' },
  { key: 'repeat', name: 'deliver and keep', isWorld: true, when: ({ repeats }) => repeats > 0 },
  { key: 'lose', name: 'lose', isWorld: true, when: drops },
  { key: 'land', name: 'write lands' },
  { key: 'tear', name: 'write lands torn', isWorld: true, when: () => false },
  { key: 'submit', name: 'submit', isWorld: true },
  { key: 'clientGone', name: 'client leaves', isWorld: true, when: ({ aborts }) => aborts > 0 },
  { key: 'prefillAdmit', name: 'prefill takes pages' },
  { key: 'prefillHit', name: 'prefill takes a sealed prefix', when: prefixes },
  { key: 'compute', name: 'prefill computes and posts a page' },
  { key: 'abandon', name: 'prefill gives up', isWorld: true, when: ({ abandons }) => abandons > 0 },
  { key: 'prefillEvict', name: 'prefill evicts a sealed page', when: prefixes },
  { key: 'decodeAdmit', name: 'decode leases pages' },
  { key: 'decodeHit', name: 'decode takes a sealed prefix', when: prefixes },
  { key: 'attach', name: 'a handle names a page', isWorld: true, when: ({ handles }) => handles > 0 },
  { key: 'verify', name: 'decode verifies' },
  { key: 'readBegin', name: 'decode begins to read' },
  { key: 'readEnd', name: 'decode ends its read' },
  { key: 'finish', name: 'decode finishes' },
  { key: 'decodeEvict', name: 'decode evicts a sealed page', when: prefixes },
  { key: 'gatewayTimer', name: 'gateway asks again' },
  { key: 'prefillTimer', name: 'prefill asks again', when: drops },
  { key: 'decodeTimer', name: 'decode asks again', when: drops },
  { key: 'timeout', name: 'the drain is called late', isWorld: true, when: ({ aborts }) => aborts > 0 },
  { key: 'prefillRestart', name: 'prefill restarts', isWorld: true, when: crashes },
  { key: 'decodeRestart', name: 'decode restarts', isWorld: true, when: decodeCrashes },
  { key: 'gatewayLearnsPrefill', name: 'gateway learns of the new prefill', when: crashes },
  { key: 'gatewayLearnsDecode', name: 'gateway learns of the new decode', when: decodeCrashes },
  { key: 'decodeLearnsPrefill', name: 'decode learns of the new prefill', when: crashes },
  { key: 'prefillLearnsDecode', name: 'prefill learns of the new decode', when: decodeCrashes },
];

/** The number of each kind. */
export const A: Readonly<Record<ActionKey, number>> = Object.fromEntries(
  ACTION_KEYS.map((key, index) => [key, index]),
) as Record<ActionKey, number>;

export const ACTION_NAMES: readonly string[] = KINDS.map(({ name }) => name);

export function actionKinds(scope: HandoffScope): ActionKind[] {
  return KINDS.map((kind) => ({
    name: kind.name,
    isProgress: kind.isWorld !== true,
    isExpected: kind.when === undefined || kind.when(scope),
  }));
}
