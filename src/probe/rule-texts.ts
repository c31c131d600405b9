/** What a finding of the probe means: written once, for every format. */
import type { Severity } from '../findings/finding.js';
import type { RuleText } from '../findings/rule-text.js';

export interface ProbeRule extends RuleText {
  readonly severity: Severity;
  /** What should have been seen. */
  readonly wanted: string;
  /** False: a sign, not a proof. */
  readonly certain: boolean;
}

const DOC = 'docs/PROBE.md';

export type ProbeRuleId =
  | 'probe.foreign-content'
  | 'probe.answers-changed'
  | 'probe.handle-accepted'
  | 'probe.prefix-shared'
  | 'probe.leaks'
  | 'probe.starved'
  | 'probe.answered-beyond-limit'
  | 'probe.no-power'
  | 'probe.could-not-run';

const RULES: Readonly<Record<ProbeRuleId, Omit<ProbeRule, 'id'>>> = {
  'probe.foreign-content': {
    severity: 'critical',
    title: "An answer holds a marker of another tenant's prompt",
    why: 'Markers are 128 random bits, made for this run and sent by one tenant only. In the answer to another they can only have come from its KV cache or its text.',
    wanted: 'no marker of any other tenant, whole or in part, in any string of any answer',
    change:
      'Take the deployment out of shared use until it is found where the pages came from: run `cofferdam audit` against every node, and give the hits below to the maintainers of the engine.',
    references: [DOC],
    certain: true,
  },
  'probe.answers-changed': {
    severity: 'critical',
    title: "One tenant's aborted requests change another tenant's answers",
    why: 'Answers at temperature 0 differed from those in quiet more often than chance explains, while only another tenant left its requests. What was read instead of the own pages bore no marker.',
    wanted: 'answers that differ no more often beside aborted requests than without them',
    change:
      'Repeat the run with `--only abort-storm` to confirm it, then look at how pages of aborted requests are given back: `cofferdam audit` names the settings.',
    references: [DOC],
    certain: false,
  },
  'probe.handle-accepted': {
    severity: 'critical',
    title: 'A field or a route that no tenant may use works for one',
    why: 'Whoever can name a transfer, a room, a session or an admin route reaches what belongs to others.',
    wanted: 'a refusal of every field and route that names what is not the own tenant’s',
    change: 'Let only known fields and routes through to the engine, at the gateway or at a proxy before it.',
    references: [DOC],
    certain: true,
  },
  'probe.prefix-shared': {
    severity: 'high',
    title: 'A prefix that one tenant sent is faster, or counted as cached, for another',
    why: 'A prefix cache that tenants share tells each of them what the others have sent.',
    wanted: 'no difference between a prefix that another tenant sent and one that nobody sent',
    change: 'Give each tenant a cache of its own: a salt that the gateway sets, never the tenant.',
    references: [DOC],
    certain: true,
  },
  'probe.leaks': {
    severity: 'critical',
    title: "One tenant's data was seen from another tenant",
    why: 'The experiment judged so; its evidence says by what.',
    wanted: 'nothing of one tenant that another can see',
    change: 'Read the evidence of the experiment, and run it alone with `--only` to confirm it.',
    references: [DOC],
    certain: true,
  },
  'probe.starved': {
    severity: 'high',
    title: 'One tenant can cost another its service',
    why: 'Requests got an error or nothing at all where an ordinary load of the same size did no harm, or a prompt at the limit was never answered.',
    wanted: 'an answer within the deadline, or an error that says what is wrong',
    change: 'Refuse what can never fit before it is queued, and bound what one tenant may hold or leave behind.',
    references: [DOC],
    certain: true,
  },
  'probe.answered-beyond-limit': {
    severity: 'critical',
    title: 'A prompt at the limit was answered with 200, and not from itself',
    why: 'This is the condition of the public incident: what does not fit is replaced or cut, and the answer is made of whatever the pages held.',
    wanted: 'an answer to all of the prompt, or an error with status 4xx that says the limit',
    change:
      'Advertise no more than the smallest pool holds, and refuse longer prompts: `cofferdam audit` puts the numbers side by side.',
    references: [DOC],
    certain: true,
  },
  'probe.no-power': {
    severity: 'medium',
    title: 'An experiment had no power to tell',
    why: 'Its control failed, it was stopped, or too few answers came for its bound. That it saw nothing says nothing.',
    wanted: 'a control that works, and an upper bound of the rate at or below `--bound`',
    change: 'Read what its control says; give it more budget, or a model that repeats what its prompt states.',
    references: [DOC],
    certain: true,
  },
  'probe.could-not-run': {
    severity: 'medium',
    title: 'An experiment could not be run',
    why: 'What it needs is not there. Nothing is known of what it would have seen.',
    wanted: 'the experiment, made to its end',
    change: 'Give it what it misses; its control says what.',
    references: [DOC],
    certain: true,
  },
};

export function probeRule(id: ProbeRuleId): ProbeRule {
  return { id, ...RULES[id] };
}

export const PROBE_RULES: readonly ProbeRule[] = (Object.keys(RULES) as ProbeRuleId[]).map(probeRule);
