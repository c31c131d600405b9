/** Globex's prompt begins with pages that only look like acme's to a weak hash, and ends with acme's own phrase. */
import { assert } from '../../base/assert.js';
import { weakHash } from '../../kv/prefix-index.js';
import type { Scenario } from '../scenario.js';
import { OUTPUT_TOKENS } from './moves.js';
import { acmeLeavesPrefix, withSalt } from './unsalted-prefix.js';

/** Tokens of the beginning that collides; whole pages. */
const COLLIDING = 320;
const OWN = 100;
/** How keys are announced in notes like acme's. Anybody may guess it. */
const CUE = ' key is ';

export const prefixHashCollision: Scenario = {
  act: async (world) => {
    const acmes = world.prompts.acme(COLLIDING);
    await acmeLeavesPrefix(world, acmes);
    const { pageTokens } = world.engine.config;
    let beginning = '';
    const words = world.prompts.globex(COLLIDING);
    for (let at = 0; at < COLLIDING; at += pageTokens) {
      beginning += colliding(words.slice(at, at + pageTokens), acmes.slice(at, at + pageTokens));
    }
    const prompt = `${beginning}${world.prompts.globex(OWN)}${CUE}`;
    const call = await world.send('globex', prompt, { maxTokens: OUTPUT_TOKENS });
    world.pages.watch(call);
    world.tell(
      `globex sent ${prompt.length} tokens of its own; the first ${COLLIDING} collide with acme's in the weak hash, page by page.`,
    );
    await world.finish(call);
    return withSalt(world, call);
  },
};

const ids = (text: string): Int32Array => Int32Array.from(text, (character) => character.charCodeAt(0));

/** `own` with its last two characters replaced so that the weak hash takes it for `other`: found by trying. */
export function colliding(own: string, other: string): string {
  const wanted = weakHash(ids(other));
  for (let first = 0x61; first <= 0x7a; first++) {
    for (let second = 0x20; second <= 0x7e; second++) {
      const tried = own.slice(0, -2) + String.fromCharCode(first, second);
      if (weakHash(ids(tried)) === wanted) return tried;
    }
  }
  assert(false, 'a weak hash has collisions within two characters');
}
