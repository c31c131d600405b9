/** The world's actions in words. */
import { E, EVENT_FIXED_WIDTH, eventInWords } from '../../handoff/messages.js';
import { ACTION_INDEX_MAX } from '../model.js';
import { A, ACTION_NAMES } from './handoff-actions.js';
import {
  ownerAttempt,
  ownerPlace,
  ownerSlot,
  PAGES_PER_SLOT,
  unpack,
  type WorldRecord,
  writePage,
} from './handoff-record.js';

const ACTOR_NAMES = ['gateway', 'prefill', 'decode'] as const;

export function handoffActionInWords(record: WorldRecord, action: number): string {
  const kind = (action / ACTION_INDEX_MAX) | 0;
  const index = action % ACTION_INDEX_MAX;
  const { words, messages, writes } = record;
  const name = ACTION_NAMES[kind];
  if (kind === A.deliver || kind === A.repeat || kind === A.lose) {
    const event = new Int32Array(EVENT_FIXED_WIDTH + 2 * PAGES_PER_SLOT);
    const target = unpack(words[messages + 2 * index], words[messages + 2 * index + 1], event);
    return `${name} to ${ACTOR_NAMES[target]}: ${eventInWords(event)} from ${event[E.from]}`;
  }
  if (kind === A.land || kind === A.tear) {
    const write = words[writes + index];
    return `${name}: slot ${ownerSlot(write)} attempt ${ownerAttempt(write)} place ${ownerPlace(write)} in page ${writePage(write)}`;
  }
  return `${name} ${index}`;
}
