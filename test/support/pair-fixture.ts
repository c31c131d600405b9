/** A pair of SGLang nodes that a test plays, the adapter in front of it, and an ear for one request. */
import { FakeSglang } from './fake-pair.js';
import { type NodeMaking, nodeMaking } from './sglang-double.js';
import type { PromptCounts, UpstreamEnd, UpstreamRequest, UpstreamRun } from '../../src/upstream/upstream.js';
import { SglangPairUpstream } from '../../src/upstream/sglang/pair.js';
import type { SglangOptions } from '../../src/upstream/sglang/single.js';

const PROMPT = 'six words that are no secret';
export const TOKENS = 6;

export interface PairFixture extends NodeMaking {
  readonly prefills: FakeSglang[];
  readonly decode: FakeSglang;
  readonly upstream: SglangPairUpstream;
}

/** An adapter over nodes that answer as written; `open` gets what closes them. */
export async function fakePair(
  open: (() => Promise<void>)[],
  prefillCount: number,
  options: Partial<SglangOptions>,
): Promise<PairFixture> {
  const prefills = await Promise.all(
    Array.from({ length: prefillCount }, () => new FakeSglang('prefill', { pool: 2048 }).listen()),
  );
  const decode = await new FakeSglang('decode').listen();
  const making = nodeMaking();
  const upstream = await SglangPairUpstream.open(
    making.node(decode.url),
    prefills.map(({ url }) => making.node(url)),
    making.options(options),
  );
  open.push(async () => {
    await upstream.close();
    await Promise.all([decode, ...prefills].map((node) => node.close()));
  });
  return { ...making, prefills, decode, upstream };
}

/** What one request through a pair was told, in order. */
export class Heard {
  readonly events: string[] = [];
  text = '';
  counts: PromptCounts | null = null;
  end: UpstreamEnd | null = null;
  run: UpstreamRun | null = null;
  isReleased = false;
  readonly released: Promise<void>;

  constructor(
    upstream: SglangPairUpstream,
    overrides: Partial<UpstreamRequest> = {},
    onStarted?: (heard: Heard) => void,
  ) {
    let resolve: () => void = () => {};
    this.released = new Promise((done) => {
      resolve = done;
    });
    const request: UpstreamRequest = {
      id: 'a'.repeat(32),
      traceparent: `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`,
      prompt: { kind: 'text', text: PROMPT },
      maxTokens: 3,
      temperature: 0,
      seed: 7,
      tenant: 1,
      salt: 'ab'.repeat(32),
      engineFields: {},
      ...overrides,
    };
    this.run = upstream.start(request, {
      started: (counts) => {
        this.counts = counts;
        this.events.push('started');
        onStarted?.(this);
      },
      text: (piece) => {
        this.text += piece;
        this.events.push('text');
      },
      piece: () => this.events.push('piece'),
      end: (end) => {
        this.events.push('end');
        this.end = end;
      },
      released: () => {
        this.events.push('released');
        this.isReleased = true;
        resolve();
      },
    });
  }
}

/** The kind of an end; of a failure its code, and the guard behind it. */
export const failure = (end: UpstreamEnd | null): string =>
  end?.kind === 'failed' ? `${end.code}${end.guard === null ? '' : ` by ${end.guard}`}` : String(end?.kind);
