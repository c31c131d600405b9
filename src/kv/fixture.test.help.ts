/** Pools, tags and threads for the tests of this folder. Loaded as a thread's entry it runs the job it was started with. */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Checksummer } from './checksum.js';
import { type PageGeometry, pageGeometry } from './geometry.js';
import { PagePool, type PoolDescriptor, type PoolNode } from './pool.js';
import { type RegistrationHandle, RegistrationTable } from './registration.js';
import { newSharedMemory, type SharedMemory } from '../base/shared-memory.js';
import { newPageTag, OWNER_LEASE, type PageTag } from './tag.js';
import { Wire, type WireOptions } from './wire.js';

/** 16 tokens, 2 layers, 8 floats a row: 2 KiB of payload. */
export const GEOMETRY: PageGeometry = pageGeometry(16, 2, 8);

export function newPool(pages: number, node: PoolNode = 'decode', geometry: PageGeometry = GEOMETRY): PagePool {
  return new PagePool({ memory: newSharedMemory(pages * geometry.pageBytes), base: 0, pages, geometry, node });
}

/** Every byte of the payload, from a number. */
export function fillPayload(pool: PagePool, page: number, value: number): void {
  const payload = pool.payload(page);
  new Int32Array(payload.buffer, payload.byteOffset, payload.byteLength / 4).fill(value);
}

export function payloadWord(pool: PagePool, page: number, index: number): number {
  return Atomics.load(pool.words, page * pool.pageWords + 16 + index);
}

/** Lease 3, attempt 1, decode incarnation 7, epoch 5, place 0, full; and what is given. */
export function leaseTag(change: Partial<PageTag> = {}): PageTag {
  const own = {
    ownerKind: OWNER_LEASE,
    owner: 3,
    attempt: 1,
    incarnation: 7,
    epoch: 5,
    place: 0,
    filled: 16,
    writer: 2,
  };
  return { ...newPageTag(), ...own, ...change };
}

export interface Ends {
  readonly source: PagePool;
  readonly target: PagePool;
  readonly registrations: RegistrationTable;
  readonly handle: RegistrationHandle;
  readonly wire: Wire;
}

export function newEnds(options: Partial<WireOptions> = {}, pages = 16): Ends {
  const source = newPool(pages, 'prefill');
  const target = newPool(pages, 'decode');
  const registrations = new RegistrationTable(4);
  const handle = registrations.register(2)!;
  const wire = new Wire({ source, target, registrations, handle, delay: null, reorder: null, ...options });
  return { source, target, registrations, handle, wire };
}

/** Words of the gate that test and thread share. */
export const GO = 0;
export const STOP = 1;
export const ROUNDS = 2;

/**
 * `land`: waits for GO, lands one page of lease 9 on page 0, and counts ROUNDS. `land-in-loop`: lands page after page on page 0,
 * payload and step of round n being n, until STOP. `checksum`: answers the checksum of page 0, made in the posted memory.
 */
export interface ThreadJob {
  readonly kind: 'land' | 'land-in-loop' | 'checksum';
  readonly target: PoolDescriptor;
  readonly memory: SharedMemory | null;
  readonly registrations: SharedArrayBuffer;
  readonly handle: RegistrationHandle;
  readonly gate: SharedArrayBuffer;
}

export interface Thread {
  readonly gate: Int32Array;
  readonly worker: Worker;
  /** Tells the thread to stop, and resolves with its exit. */
  stop(): Promise<void>;
}

export async function startThread(
  job: Omit<ThreadJob, 'gate' | 'memory'> & { memory?: SharedMemory },
): Promise<Thread> {
  const gate = new Int32Array(new SharedArrayBuffer(16));
  const data: ThreadJob = { memory: null, ...job, gate: gate.buffer as SharedArrayBuffer };
  const worker = new Worker(new URL(import.meta.url), { workerData: { kvThreadJob: data } });
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  await new Promise((resolve, reject) => worker.once('online', resolve as () => void).once('error', reject));
  const stop = async (): Promise<void> => {
    Atomics.store(gate, STOP, 1);
    Atomics.store(gate, GO, 1);
    Atomics.notify(gate, GO);
    await exited;
  };
  return { gate, worker, stop };
}

function runJob(job: ThreadJob): void {
  const target = PagePool.attach(job.target);
  const gate = new Int32Array(job.gate);
  if (job.kind === 'checksum') {
    const { base, pages, geometry, node } = job.target;
    const own = new PagePool({ memory: job.memory!, base, pages, geometry, node });
    const out = new Uint32Array(2);
    new Checksummer(job.memory!).page(own, 0, out);
    parentPort!.postMessage([...out]);
    return;
  }
  const source = newPool(1, 'prefill');
  const registrations = new RegistrationTable(job.registrations);
  const wire = new Wire({ source, target, registrations, handle: job.handle, delay: null, reorder: null });
  const tag = leaseTag({ owner: 9 });
  Atomics.wait(gate, GO, 0);
  for (let round = 1; Atomics.load(gate, STOP) === 0; round++) {
    fillPayload(source, 0, round);
    tag.writtenAtStep = round;
    wire.post({ room: 9n, slot: 9, attempt: 1, sourcePage: 0, targetPage: 0, tag }, round);
    wire.poll(round);
    Atomics.add(gate, ROUNDS, 1);
    Atomics.notify(gate, ROUNDS);
    if (job.kind === 'land') return;
  }
}

const started = workerData as { kvThreadJob?: ThreadJob } | null;
if (!isMainThread && started?.kvThreadJob) runJob(started.kvThreadJob);

/** Waits, in this thread, until the thread behind `gate` has done `rounds` more rounds; bounded by 10 s. */
export function awaitRounds(gate: Int32Array, rounds: number): boolean {
  const wanted = Atomics.load(gate, ROUNDS) + rounds;
  for (let i = 0; i < 1_000; i++) {
    const now = Atomics.load(gate, ROUNDS);
    if (now >= wanted) return true;
    Atomics.wait(gate, ROUNDS, now, 10);
  }
  return false;
}
