/**
 * Prefill completes globex's prompt and dies before decode hears of it. Globex's retry is lent the pages into which acme's prompt was
 * being written, and then the old completion arrives and speaks for the new transfer.
 */
import { DecodePhase } from '../../handoff/decode.js';
import { E, EventKind } from '../../handoff/messages.js';
import type { Scenario } from '../scenario.js';
import { globexAsks, OUTPUT_TOKENS } from './moves.js';

const GLOBEX_TOKENS = 700;
const ACME_TOKENS = 1000;
/** Of acme's prompt, when prefill dies: three chunks, more than globex's pages hold. */
const ACME_WRITTEN = 768;

export const retryKeepsAttempt: Scenario = {
  act: async (world) => {
    const { engine } = world;
    const call = await globexAsks(world, GLOBEX_TOKENS);
    let isHeld = false;
    engine.holdToDecode((message) => {
      if (message.kind !== 'protocol') return false;
      const { event } = message;
      const isOld = event[E.kind] === EventKind.complete && event[E.slot] === call.slot && event[E.from] === 1;
      isHeld ||= isOld;
      return isOld;
    });
    world.run(() => isHeld);
    world.tell(`globex sent a prompt of ${GLOBEX_TOKENS} tokens; prefill completed it, and its word was late.`);
    await world.send('acme', world.prompts.acme(ACME_TOKENS), { maxTokens: OUTPUT_TOKENS });
    world.run(() => engine.stats.get('tokensPrefilled') >= GLOBEX_TOKENS + ACME_WRITTEN);
    engine.restartPrefill('decode');
    engine.prefill.wire.hold((write) => write.slot === call.slot);
    world.tell(`acme sent one of ${ACME_TOKENS}; when ${ACME_WRITTEN} were written, prefill died and came back.`);
    world.run(() => call.end !== null || world.decodePhase(call) === DecodePhase.leased);
    world.tell(
      call.end === null
        ? "globex was tried again and lent acme's former pages; then the completion of its first attempt arrived."
        : "globex's attempt ended before any page was lent to it again.",
    );
    engine.releaseToDecode();
    await world.finish(call);
    const words = 'a second start under an old attempt number was not taken, and the attempt stayed closed';
    const isKept = world.isOn('lease') && call.end?.guard === null && call.end.outcome === 'failed';
    return { call, maxTokens: OUTPUT_TOKENS, prevented: isKept ? { guard: 'lease', words } : undefined };
  },
};
