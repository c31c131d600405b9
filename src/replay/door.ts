/** The engine's door with somebody who writes down who goes through it. */
import type { Coordinator } from '../engine/coordinator.js';
import { GatewayPhase } from '../handoff/gateway.js';
import { getSlot } from '../handoff/layout.js';
import type { Call } from './call.js';
import type { EngineRequest, EngineRun, EngineSink } from './engine-types.js';

/** What the gateway's upstream needs of an engine. */
export interface EngineDoor {
  describe(): ReturnType<Coordinator['describe']>;
  submit(request: EngineRequest, sink: EngineSink): EngineRun;
  stats(): ReturnType<Coordinator['stats']>;
  close(): Promise<void>;
}

/** `callOf` names the call that a request belongs to; null: nobody's. */
export function watchedDoor(engine: Coordinator, callOf: (request: EngineRequest) => Call | null): EngineDoor {
  return {
    describe: () => engine.describe(),
    stats: () => engine.stats(),
    close: () => engine.close(),
    submit: (request, sink) => {
      const call = callOf(request);
      if (call === null) return engine.submit(request, sink);
      call.isSubmitted = true;
      const before = openSlots(engine);
      const run = engine.submit(request, {
        started: (counts) => sink.started(counts),
        token: (id) => {
          call.tokens.push(id);
          sink.token(id);
        },
        end: (end) => {
          call.end = end;
          sink.end(end);
        },
        released: () => {
          call.isReleased = true;
          sink.released();
        },
      });
      const slot = openSlots(engine).find((each) => !before.includes(each));
      if (slot !== undefined) {
        call.slot = slot;
        call.attempt = getSlot(engine.machine.view, slot, 'attempt');
      }
      return run;
    },
  };
}

function openSlots(engine: Coordinator): number[] {
  const { view } = engine.machine;
  return Array.from({ length: view.shape.slots }, (_, slot) => slot).filter(
    (slot) => getSlot(view, slot, 'phase') !== GatewayPhase.idle,
  );
}
