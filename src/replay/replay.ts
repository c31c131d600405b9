/** Plays one fault under one set of guards and says what came of it. */
import { CATALOGUE, type FaultName, FAULTS, type Outcome } from '../handoff/faults.js';
import { ALL_GUARDS, type GuardBits, guardBit, guardBits, type GuardName, GUARDS } from '../handoff/guards.js';
import { OWNER_LEASE, OWNER_TENANT } from '../kv/tag.js';
import { MarkerIndex, mergeHits } from '../markers/marker-index.js';
import type { Call } from './call.js';
import { type ForeignPage, writerOf } from './page-watch.js';
import type { Acted } from './scenario.js';
import { SCENARIOS } from './scenarios/all.js';
import { type UpstreamMaker, World } from './world.js';

export interface LeakedPage {
  readonly page: number;
  /** Where the page lay in the table of the request that read it. */
  readonly place: number;
  readonly owner: string;
  /**
   * From the page's own tag: the lease's slot and attempt (null: a sealed page, which is its tenant's), the place in the owner's
   * request, and who wrote it when.
   */
  readonly slot: number | null;
  readonly attempt: number | null;
  readonly ownerPlace: number;
  readonly writer: string;
  readonly writtenAtStep: number;
}

export interface LeakedMarker {
  readonly owner: string;
  /** Characters in a row that agree with the marker, and which: markers are synthetic, so they may be shown. */
  readonly characters: number;
  readonly text: string;
  /**
   * How many pages in the reader's table held some of these characters: attention had them from there, from all of them alike where
   * the owner's text repeats itself. Some of them, from the first place on.
   */
  readonly pageCount: number;
  readonly pages: readonly LeakedPage[];
}

export interface Evidence {
  readonly seed: number;
  /** What happened, a sentence each. */
  readonly story: readonly string[];
  /** In all markers of acme together. */
  readonly markerCharacters: number;
  readonly markers: readonly LeakedMarker[];
  /** Pages of another request in the requester's table while it decoded. */
  readonly foreignPages: number;
  /** Tokens of the requester's prompt that were answered from pages kept of an earlier one, and how many such pages were another tenant's. */
  readonly cachedTokens: number;
  readonly sharedPages: number;
  /** Code and message of the error that the requester got. */
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Whether the answer is what an engine without the fault gives; null where it was not compared. */
  readonly isOwnAnswer: boolean | null;
  /** What the guards of the engine noted, a sentence each. */
  readonly guardNotes: readonly string[];
  /** What the catalogue says of all guards off or all on; null for other sets. */
  readonly expected: Outcome | null;
  readonly isAsExpected: boolean;
}

export interface ReplayResult {
  readonly fault: FaultName;
  readonly source: string;
  readonly guards: Readonly<Record<GuardName, 'on' | 'off'>>;
  readonly outcome: Outcome;
  /** What the requester got over HTTP; null: nothing. */
  readonly status: number | null;
  readonly stoppedBy: GuardName | null;
  readonly evidence: Evidence;
}

export interface ReplayOptions {
  readonly fault: FaultName;
  readonly guards: GuardBits;
  readonly seed: number;
  readonly upstream: UpstreamMaker;
}

/** Pages of one leaked marker that are listed. */
const LEAKED_PAGES_MAX = 4;
/** Sentences of the guards that are kept. */
const GUARD_NOTES_MAX = 4;

export async function replayFault(options: ReplayOptions): Promise<ReplayResult> {
  const { fault, guards, seed, upstream } = options;
  const scenario = SCENARIOS[fault];
  const sizes = scenario.sizes ?? {};
  const world = await World.open({ fault, guards, seed, sizes, upstream });
  try {
    const acted = await scenario.act(world);
    const leaked = leakedMarkers(world, acted.call);
    const isOwnAnswer = needsQuiet(acted.call, leaked) ? await isQuietAnswer(options, acted) : null;
    return judge(options, world, acted, leaked, isOwnAnswer);
  } finally {
    await world.close();
  }
}

/** The sets of guards of one row of the matrix: all off, all on; in full also each one alone. */
export function matrixSets(isFull: boolean): readonly GuardBits[] {
  return [0, ALL_GUARDS, ...(isFull ? GUARDS.map(guardBit) : [])];
}

/** Every fault under each of `matrixSets`, in the order of the catalogue. `onRow` hears of each fault as it is there. */
export async function replayMatrix(
  options: Omit<ReplayOptions, 'fault' | 'guards'>,
  isFull: boolean,
  onRow: (row: readonly ReplayResult[]) => void = () => {},
): Promise<ReplayResult[]> {
  const results: ReplayResult[] = [];
  for (const fault of FAULTS) {
    const row: ReplayResult[] = [];
    for (const guards of matrixSets(isFull)) row.push(await replayFault({ ...options, fault, guards }));
    onRow(row);
    results.push(...row);
  }
  return results;
}

function leakedMarkers(world: World, call: Call): LeakedMarker[] {
  if (call.tenant === 'acme' || call.answer === null) return [];
  const hits = mergeHits(new MarkerIndex(world.prompts.markers).scanText(call.answer.text));
  return hits.map((hit) => {
    const sources = world.pages.sourcesOf(hit);
    return {
      owner: hit.marker.owner,
      characters: hit.length,
      text: hit.marker.text.slice(hit.markerOffset, hit.markerOffset + hit.length),
      pageCount: sources.length,
      pages: sources.slice(0, LEAKED_PAGES_MAX).map(leakedPage),
    };
  });
}

function leakedPage({ page, place, tag, owner }: ForeignPage): LeakedPage {
  return {
    page,
    place,
    owner: owner?.tenant ?? 'unknown',
    slot: tag.ownerKind === OWNER_LEASE ? tag.owner : null,
    attempt: tag.ownerKind === OWNER_LEASE ? tag.attempt : null,
    ownerPlace: tag.place,
    writer: writerOf(tag),
    writtenAtStep: tag.writtenAtStep,
  };
}

function needsQuiet(call: Call, leaked: readonly LeakedMarker[]): boolean {
  return call.answer?.status === 200 && leaked.length === 0;
}

/** The same prompt on an engine without the fault, with every guard on, and nothing else in it. */
async function isQuietAnswer(options: ReplayOptions, acted: Acted): Promise<boolean> {
  const { seed, upstream } = options;
  const world = await World.open({ fault: null, guards: ALL_GUARDS, seed, sizes: {}, upstream });
  try {
    const call = await world.send(acted.call.tenant, acted.call.prompt, { maxTokens: acted.maxTokens });
    await world.finish(call);
    return call.answer?.status === 200 && call.answer.text === acted.call.answer?.text;
  } finally {
    await world.close();
  }
}

function judge(
  options: ReplayOptions,
  world: World,
  acted: Acted,
  markers: readonly LeakedMarker[],
  isOwnAnswer: boolean | null,
): ReplayResult {
  const { fault, guards, seed } = options;
  const { call, prevented } = acted;
  const sharedPages = world.pages.foreign.filter(({ tag }) => tag.ownerKind === OWNER_TENANT).length;
  const outcome = outcomeOf(call, isOwnAnswer, sharedPages);
  const expected =
    guards === 0 ? CATALOGUE[fault].expected.off : guards === ALL_GUARDS ? CATALOGUE[fault].expected.on : null;
  const markerCharacters = markers.reduce((sum, { characters }) => sum + characters, 0);
  const answer = call.answer;
  const notes = world.engine.coordinator.stats().findings.map(({ guard, words }) => `${guard}: ${words}`);
  const result: Omit<ReplayResult, 'evidence'> = {
    fault,
    source: CATALOGUE[fault].source,
    guards: Object.fromEntries(GUARDS.map((name) => [name, world.isOn(name) ? 'on' : 'off'])) as ReplayResult['guards'],
    outcome,
    status: answer?.status ?? null,
    stoppedBy: isHarm(outcome) ? null : (guardOf(call) ?? prevented?.guard ?? null),
  };
  if (prevented !== undefined && result.stoppedBy === prevented.guard) world.tell(`${sentence(prevented.words)}`);
  return {
    ...result,
    evidence: {
      seed,
      story: world.story,
      markerCharacters,
      markers,
      foreignPages: world.pages.foreign.length,
      cachedTokens: call.end?.cachedTokens ?? 0,
      sharedPages,
      error:
        answer === null || answer.errorCode === null
          ? null
          : { code: answer.errorCode, message: answer.errorMessage ?? '' },
      isOwnAnswer,
      guardNotes: notes.slice(0, GUARD_NOTES_MAX),
      expected,
      isAsExpected: isAsExpected(fault, guards, outcome, markerCharacters, expected),
    },
  };
}

function sentence(words: string): string {
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}.`;
}

/** An answer that is not the requester's own was computed over pages of another: that is a leak, whether a marker is in it or not. */
function outcomeOf(call: Call, isOwnAnswer: boolean | null, sharedPages: number): Outcome {
  const { answer, end } = call;
  if (answer === null) return 'hung';
  if (answer.status === 200 && isOwnAnswer !== true) return 'leaked';
  if (answer.status === 200) return sharedPages > 0 ? 'shared' : 'answered';
  const isRefusedAtTheDoor = !call.isSubmitted && answer.status < 500;
  return isRefusedAtTheDoor || end?.outcome === 'refused' ? 'refused' : 'failed-closed';
}

function guardOf(call: Call): GuardName | null {
  const { answer, end } = call;
  if (end !== null && end.guard !== null) return end.guard;
  switch (answer?.errorCode) {
    case 'field_not_allowed':
      return 'policy';
    case 'context_length_exceeded':
      return call.isSubmitted ? null : 'admission';
    case 'verification_failed':
      return 'usage';
    default:
      return null;
  }
}

function isHarm(outcome: Outcome): boolean {
  return outcome === 'leaked' || outcome === 'shared' || outcome === 'hung';
}

/** All off or all on: what the catalogue says. Other sets: no harm while a guard that stops the fault is on. */
function isAsExpected(
  fault: FaultName,
  guards: GuardBits,
  outcome: Outcome,
  markerCharacters: number,
  expected: Outcome | null,
): boolean {
  if (expected !== null) return outcome === expected && (outcome !== 'leaked' || markerCharacters > 0);
  return !isHarm(outcome) || (guards & guardBits(CATALOGUE[fault].guards)) === 0;
}
