/** Makes the memory, model and pool of one role; the same in a worker thread and in one thread. */
import type { SharedMemory } from '../base/shared-memory.js';
import { type PageGeometry, pageGeometry } from '../kv/geometry.js';
import { PagePool } from '../kv/pool.js';
import { LAB_CONFIG, loadLabWeights } from '../model/lab-weights.js';
import { createRoleMemory, planRoleMemory, type RoleMemoryPlan } from '../model/memory.js';
import { createModel, type Model } from '../model/model.js';
import type { EngineConfig } from './config.js';
import type { NodePorts } from './traffic.js';

export type Role = 'prefill' | 'decode';

export function geometryOf(config: EngineConfig): PageGeometry {
  return pageGeometry(config.pageTokens, LAB_CONFIG.layers, LAB_CONFIG.kvHeads * LAB_CONFIG.headDim);
}

export function planFor(config: EngineConfig, role: Role): RoleMemoryPlan {
  return planRoleMemory({
    config: LAB_CONFIG,
    geometry: geometryOf(config),
    pages: (role === 'prefill' ? config.prefillPool : config.decodePool) / config.pageTokens,
    chunkTokensMax: role === 'prefill' ? config.chunkTokens : 1,
    runningMax: role === 'prefill' ? 1 : config.runningMax,
  });
}

export function memoryFor(config: EngineConfig, role: Role): SharedMemory {
  return createRoleMemory(planFor(config, role));
}

export function poolIn(config: EngineConfig, role: Role, memory: SharedMemory): PagePool {
  const plan = planFor(config, role);
  return new PagePool({ memory, base: plan.poolBase, pages: plan.pages, geometry: geometryOf(config), node: role });
}

export function modelIn(config: EngineConfig, role: Role, memory: SharedMemory): Model {
  const plan = planFor(config, role);
  return createModel({
    config: LAB_CONFIG,
    weights: loadLabWeights(),
    memory,
    plan,
    geometry: geometryOf(config),
    kernels: config.kernels,
  });
}

/** Registrations that a decode node can hand out over its life: one for each incarnation of prefill. */
export const REGISTRATION_ENTRIES = 64;

export type { NodePorts };
