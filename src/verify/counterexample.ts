/** A violation as a file that an engine can be driven with. */
import type { Counterexample, CounterexampleStep } from '../handoff/counterexample.js';
import { type FaultName, faultsOf } from '../handoff/faults.js';
import { GS, slotAt } from '../handoff/layout.js';
import { E, EVENT_FIXED_WIDTH, type EventKindName, eventName } from '../handoff/messages.js';
import { type JobResult, modelOf } from './campaign.js';
import { ACTION_INDEX_MAX } from './model.js';
import { A, ACTION_KEYS, type ActionKey } from './models/handoff-actions.js';
import type { HandoffModel } from './models/handoff.js';
import {
  ownerAttempt,
  ownerPlace,
  ownerSlot,
  PAGES_PER_SLOT,
  unpack,
  writePage,
  writePrefill,
} from './models/handoff-record.js';

const MACHINES = ['gateway', 'prefill', 'decode'] as const;

/** Null: nothing broke, or without a fault. */
export function counterexampleOf({ job, found }: JobResult): Counterexample | null {
  const [fault]: readonly (FaultName | undefined)[] = faultsOf(job.scope.rules.faults);
  if (found.violation === null || fault === undefined) return null;
  const { requests, slots, prefillPages, decodePages, retries, prefixes } = job.scope;
  const { invariant, words, path } = found.violation;
  const model = modelOf({ ...job, symmetry: false });
  model.init();
  const steps = path.map((action, at): CounterexampleStep => {
    const step = { n: at + 1, ...stepOf(model, action), words: model.inWords(action) };
    const before = attemptsOf(model);
    model.next(action);
    if (step.do !== 'submit') return step;
    // The lowest free slot took it.
    return { ...step, slot: attemptsOf(model).findIndex((attempt, slot) => attempt !== before[slot]) };
  });
  return { fault, invariant, words, world: { requests, slots, prefillPages, decodePages, retries, prefixes }, steps };
}

function attemptsOf({ record: { gateway } }: HandoffModel): number[] {
  return Array.from(
    { length: gateway.shape.slots },
    (_, slot) => gateway.cells[slotAt(gateway, slot) + GS.attempt] as number,
  );
}

/** The action in the names of the state before it. */
function stepOf(model: HandoffModel, action: number): Omit<CounterexampleStep, 'n' | 'words'> {
  const kind = (action / ACTION_INDEX_MAX) | 0;
  const index = action % ACTION_INDEX_MAX;
  const name = ACTION_KEYS[kind] as ActionKey;
  switch (kind) {
    case A.deliver:
    case A.repeat:
    case A.lose:
      return { do: name, ...messageAt(model, index) };
    case A.land:
    case A.tear: {
      const write = model.record.words[model.record.writes + index] as number;
      const [slot, attempt, place] = [ownerSlot(write), ownerAttempt(write), ownerPlace(write)];
      return { do: name, slot, attempt, place, life: writePrefill(write), page: writePage(write) };
    }
    case A.submit:
      return { do: name, request: index };
    case A.prefillHit:
    case A.decodeHit:
    case A.attach:
      return { do: name, slot: index >> 3, page: index & 7 };
    case A.prefillEvict:
    case A.decodeEvict:
      return { do: name, page: index };
    default:
      return kind >= A.prefillRestart ? { do: name } : { do: name, slot: index };
  }
}

function messageAt(
  { record }: HandoffModel,
  index: number,
): Pick<CounterexampleStep, 'to' | 'event' | 'slot' | 'attempt' | 'life'> {
  const event = new Int32Array(EVENT_FIXED_WIDTH + 2 * PAGES_PER_SLOT);
  const at = record.messages + 2 * index;
  const to = MACHINES[unpack(record.words[at] as number, record.words[at + 1] as number, event)] as
    | 'gateway'
    | 'prefill'
    | 'decode';
  const name = eventName(event[E.kind] as number) as EventKindName;
  return {
    to,
    event: name,
    slot: event[E.slot] as number,
    attempt: event[E.attempt] as number,
    life: event[E.from] as number,
  };
}
