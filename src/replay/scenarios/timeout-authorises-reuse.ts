/** As with reuse before drain, but decode waits for its timer first. */
import { DecodePhase } from '../../handoff/decode.js';
import type { Scenario } from '../scenario.js';
import { acmeIsInTransfer } from './moves.js';
import { lateLanding } from './reuse-before-drain.js';

export const timeoutAuthorisesReuse: Scenario = {
  act: async (world) => {
    const acme = await acmeIsInTransfer(world, 800);
    await world.leave(acme);
    world.run(() => world.decodePhase(acme) === DecodePhase.draining);
    const isAlarmed = (): boolean => world.engine.coordinator.stats().findings.some(({ guard }) => guard === 'drain');
    world.run(() => world.decodePhase(acme) === DecodePhase.idle || isAlarmed());
    const { drainAlarmMs } = world.engine.config;
    world.tell(
      isAlarmed()
        ? `acme left; after ${drainAlarmMs} ms of draining there was an alarm, and the pages stayed out of use.`
        : `acme left; after ${drainAlarmMs} ms of draining a timer gave its pages back.`,
    );
    return lateLanding(world);
  },
};
