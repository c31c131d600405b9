/** The engine's own types by the way through its coordinator: `replay` imports no upstream. */
import type { Coordinator } from '../engine/coordinator.js';

export type EngineRequest = Parameters<Coordinator['submit']>[0];
export type EngineSink = Parameters<Coordinator['submit']>[1];
export type EngineRun = ReturnType<Coordinator['submit']>;
export type EngineEnd = Parameters<EngineSink['end']>[0];
