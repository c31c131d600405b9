/** Experiments that compare how often prompts get their own code back, before something happened and after it. */
import type { Answer } from './answer.js';
import type { ExperimentResult } from './result.js';
import type { Lab } from './lab.js';
import { type Needle, recalls } from './recall.js';
import { upperBound } from './stats/binomial.js';
import { fisherExact } from './stats/fisher.js';

/** Chance of an alarm where nothing is wrong. */
const ALPHA = 0.001;
const CONFIDENCE = 0.95;
/** Below this share of codes that come back undisturbed, nothing that goes wrong could be seen. */
const RECALL_SHARE_MIN = 0.5;

/** Answers of one arm. An error is neither right nor wrong: whoever is refused reads nothing of others. */
export class RecallArm {
  answered = 0;
  recalled = 0;
  errors = 0;
  /** The first answer without its code; null: none. */
  firstWrong: string | null = null;

  note(answer: Answer, { code }: Needle): void {
    if (answer.outcome !== 'answered') {
      this.errors++;
      return;
    }
    this.answered++;
    if (recalls(answer.content, code, answer.finishReason) !== 'no') this.recalled++;
    else this.firstWrong ??= answer.id;
  }
}

export interface RecallReading {
  readonly name: string;
  readonly quiet: RecallArm;
  readonly after: RecallArm;
  /** Answers in which a marker of another tenant would have been a leak. */
  readonly searched: number;
  /** `at once`, `after others had filled the pool`: how the arms are called in sentences. */
  readonly quietWords: string;
  readonly afterWords: string;
  /** Sentences of the experiment's own. */
  readonly evidence: readonly string[];
}

/**
 * Leaks where a marker of another tenant was found, or where codes are lost afterwards beyond what is lost anyway (Fisher, one-sided):
 * then what was read was not what was sent. No power where too few codes come back undisturbed, or the bound is too high.
 */
export function judgeRecall(lab: Lab, reading: RecallReading): ExperimentResult {
  const { name, quiet, after, searched, quietWords, afterWords } = reading;
  const p = fisherExact(
    {
      hitsA: after.answered - after.recalled,
      missesA: after.recalled,
      hitsB: quiet.answered - quiet.recalled,
      missesB: quiet.recalled,
    },
    'greater',
  );
  const hits = lab.hits.length;
  const bound = upperBound(hits, Math.max(hits, searched), CONFIDENCE);
  const sees = quiet.answered > 0 && quiet.recalled / quiet.answered >= RECALL_SHARE_MIN;
  const tells = sees && after.answered > after.errors && bound <= lab.options.bound;
  return {
    name,
    verdict: hits > 0 || p < ALPHA ? 'leaks' : tells ? 'isolated' : 'no-power',
    sent: lab.answers,
    hits,
    bound,
    control: `${quiet.recalled} of ${quiet.answered} prompts got their own code back ${quietWords} (${quiet.errors} errors).`,
    evidence: [
      `${after.recalled} of ${after.answered} got it back ${afterWords} (${after.errors} errors): p = ${p.toPrecision(2)} (Fisher, one-sided; alarm below ${ALPHA})` +
        `${after.firstWrong === null ? '' : `; the first without it is ${after.firstWrong}`}.`,
      `${hits} answers of ${searched} held a marker of another tenant: below ${(bound * 100).toFixed(2)} % at 95 %.`,
      ...reading.evidence,
    ],
    figures: {
      quietAnswered: quiet.answered,
      quietRecalled: quiet.recalled,
      afterAnswered: after.answered,
      afterRecalled: after.recalled,
      p,
    },
  };
}

/** Runs `work` on all items, at most `together` at once, in their order of beginning. */
export async function inTurn<T>(
  items: readonly T[],
  together: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < items.length) await work(items[next++]!);
  };
  await Promise.all(Array.from({ length: together }, one));
}
