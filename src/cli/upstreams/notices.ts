/** What adapters have to say, as findings. */
import type { Finding } from '../../findings/finding.js';
import type { NoticeKind, UpstreamNotice } from '../../upstream/notice.js';

interface NoticeText {
  readonly title: string;
  readonly wanted: string;
  readonly change: string;
}

const TEXTS: Readonly<Record<NoticeKind, NoticeText>> = {
  unreachable: {
    title: 'An engine’s node can not be reached',
    wanted: 'an answer',
    change: 'Start it, or look at the network between; it is asked again every second, and gets no requests meanwhile.',
  },
  back: {
    title: 'An engine’s node answers again',
    wanted: 'to know what kept it from answering',
    change: 'Nothing; it gets requests again.',
  },
  restarted: {
    title: 'An engine was started anew',
    wanted: 'a restart that somebody asked for',
    change: 'Nothing, if it was wanted: its numbers were read again.',
  },
  'version-changed': {
    title: 'An engine has another version than before',
    wanted: 'one version on all nodes',
    change: 'Run `cofferdam audit` on it: what one version does another may not.',
  },
  'model-changed': {
    title: 'An engine serves another model than it was set up with',
    wanted: 'the model that tenants ask for',
    change: 'It gets no requests. Start it with the model that it had, or start the gateway again.',
  },
  'role-switched': {
    title: 'A node has another role than before',
    wanted: 'the role that it was paired in',
    change: 'Start the gateway again if that is to stay.',
  },
  'pool-shrank': {
    title: 'An engine’s KV pool is smaller than before',
    wanted: 'a pool that holds what was advertised',
    change: 'What no longer fits is refused. Look at what else takes the memory, or at its flags.',
  },
  'pool-grew': {
    title: 'An engine’s KV pool is larger than before',
    wanted: 'to know why',
    change: 'Nothing; longer prompts are admitted.',
  },
  'capacity-unknown': {
    title: 'An engine does not say what it holds, so nothing is admitted to it',
    wanted: 'a context and a pool in tokens',
    change: 'Let it show its metrics, or write `context` and `pool` down in the file.',
  },
  'pair-mismatch': {
    title: 'A prefill node is not paired with a decode node',
    wanted: 'one model, version, page size, dtype and context on both',
    change: 'Start both with the same flags.',
  },
  'no-salt': {
    title: 'An engine’s prefix cache is shared by all tenants',
    wanted: 'a salt of its own for each tenant',
    change:
      'Turn the engine’s prefix cache off, or use a version and a way in that take a salt; `require: [salt]` refuses the start.',
  },
  'no-prefill-count': {
    title: 'Prefill’s own count of a prompt can not be compared',
    wanted: 'prefill’s answer beside decode’s',
    change: 'Name the prefill and decode nodes themselves; `require: [prefill-count]` refuses the start.',
  },
  'repeats-elsewhere': {
    title: 'What stands in front of the engines may send a request again',
    wanted: 'every request sent once',
    change: 'Turn its retries off.',
  },
  stalled: {
    title: 'What waits in an engine makes no progress',
    wanted: 'a queue that moves',
    change: 'It gets no requests until its queue moves. Look at what stands at its head, or start it again.',
  },
  'pool-exceeded': {
    title: 'An engine ran out of its KV pool, and ended every request that ran in it',
    wanted: 'a pool that holds all that was admitted',
    change:
      'Let nobody but the gateway reach it, and write its pool down (`pool`) where it does not say what its slots share.',
  },
  'foreign-requests': {
    title: 'An engine works for somebody else too, past the gateway',
    wanted: 'requests of the gateway alone',
    change: 'Let nobody but the gateway reach it: what else it holds is not counted, and not kept apart.',
  },
  'slots-hidden': {
    title: 'An engine does not show what it holds',
    wanted: 'an answer that tells when a request has left it',
    change: 'Let it show its slots (llama-server: `--slots`); meanwhile what has ended counts for longer.',
  },
  'corruption-said': {
    title: 'An engine says that KV pages were not what they had to be',
    wanted: 'no such word',
    change: 'Take it out of service, keep its log, and run `cofferdam audit` and `cofferdam exposure`.',
  },
};

export function noticeFinding({ kind, severity, node, words }: UpstreamNotice): Finding {
  return {
    id: `upstream.${kind}`,
    severity,
    ...TEXTS[kind],
    where: { node, source: 'engine' },
    observed: words,
    references: ['docs/GATEWAY.md'],
    certain: true,
  };
}
