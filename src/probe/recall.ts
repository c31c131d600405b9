/** Prompts that state a code and end by asking for it: any model that reads its prompt continues with the code. */
import type { Prng } from '../base/prng.js';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const NAME_CHARACTERS = 8;

export interface Needle {
  readonly name: string;
  readonly code: string;
}

/** A name that occurs nowhere else. */
export function newName(chance: Prng): string {
  return Array.from({ length: NAME_CHARACTERS }, () => LETTERS[chance.below(LETTERS.length)]).join('');
}

export function stated({ name, code }: Needle): string {
  return `\nThe code of ${name}: ${code}.\n`;
}

/** The end of a prompt that asks for a code; what should follow is the code. */
export function asked({ name }: Pick<Needle, 'name'>): string {
  return `\nThe code of ${name}:`;
}

/** Whether an answer is the code: whole, or its beginning where the answer was cut by a limit of tokens. */
export function recalls(content: string, code: string, finishReason: string | null): 'whole' | 'beginning' | 'no' {
  const said = content.trimStart();
  if (said.startsWith(code)) return 'whole';
  const trimmed = said.trimEnd();
  return finishReason === 'length' && trimmed.length > 0 && code.startsWith(trimmed) ? 'beginning' : 'no';
}
