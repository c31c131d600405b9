/** One artifact's share of one node, before nodes are matched. */
import type { Reading } from '../../upstream/reading.js';
import type { Exposure } from '../exposure.js';
import type { Endpoint, Source } from '../facts.js';

export interface Piece {
  readonly reading: Reading;
  /** Without a line; each fact has its own. */
  readonly source: Source;
  /** The folder or document family that it belongs to: within one, equal names are one node. */
  readonly place: string;
  /** What it calls the node: `prefill` of `prefill-startup.log`, a workload's name, `host:port`; null: nothing does. */
  readonly name: string | null;
  /** Given one by one (`--command`): matched by their order where nothing else tells. */
  readonly order?: number;
  readonly endpoint?: Endpoint;
  readonly exposure?: Exposure;
}
