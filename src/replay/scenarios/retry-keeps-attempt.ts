/**
 * Prefill completes globex's prompt and dies before decode hears of it. Acme, who waited for pages, gets them; globex's retry gets
 * them after acme, and then the old completion arrives and speaks for the new transfer.
 */
import { DecodePhase } from '../../handoff/decode.js';
import { E, EventKind } from '../../handoff/messages.js';
import type { Scenario } from '../scenario.js';
import { globexAsks, OUTPUT_TOKENS } from './moves.js';

/** Room for one of the two requests at a time. */
const DECODE_POOL = 1024;

export const retryKeepsAttempt: Scenario = {
  sizes: { decodePool: DECODE_POOL },
  act: async (world) => {
    const { engine } = world;
    const call = await globexAsks(world, 700);
    let isHeld = false;
    engine.holdToDecode((message) => {
      if (message.kind !== 'protocol') return false;
      const { event } = message;
      const isOld = event[E.kind] === EventKind.complete && event[E.slot] === call.slot && event[E.from] === 1;
      isHeld ||= isOld;
      return isOld;
    });
    world.run(() => isHeld);
    const acme = await world.send('acme', world.prompts.acme(900), { maxTokens: OUTPUT_TOKENS });
    world.tell('globex sent a prompt of 700 tokens; prefill completed it, and its word was late. Acme waited for pages.');
    engine.restartPrefill();
    engine.prefill.wire.hold((write) => write.slot === call.slot);
    world.tell('Prefill died and came back, and globex was to be tried again.');
    world.run(() => call.end !== null || (acme.end !== null && world.decodePhase(call) === DecodePhase.leased));
    engine.releaseToDecode();
    world.tell("Acme was served first; then the completion of globex's first attempt arrived.");
    if (call.end === null) world.run(() => call.end !== null || world.decodePhase(call) === DecodePhase.decoding);
    const isStarted = world.decodePhase(call) === DecodePhase.decoding;
    if (!isStarted) engine.prefill.wire.release();
    await world.finish(call);
    engine.prefill.wire.release();
    const words = 'a second start under an old attempt number was not taken, and the attempt stayed closed';
    const isKept = world.isOn('lease') && call.end?.guard === null && call.end.outcome === 'failed';
    return { call, maxTokens: OUTPUT_TOKENS, prevented: isKept ? { guard: 'lease', words } : undefined };
  },
};
