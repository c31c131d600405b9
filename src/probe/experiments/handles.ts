import { askRoutes, type RouteFindings, routeRequestsMax } from '../admin-routes.js';
import type { Answer, TransferParams } from '../answer.js';
import type { Experiment, ExperimentPlan, ExperimentResult } from '../experiment.js';
import { type FieldCase, guessedCases, ID_FIELDS, otherCases, realCases, SHARED_ROOM } from '../field-cases.js';
import type { Lab } from '../lab.js';
import { asked, type Needle, newName, recalls, stated } from '../recall.js';
import type { ProbeTenant } from '../target.js';

const ANSWER_TOKENS = 34;
const DEADLINE_MS = 10_000;
/** Prompts of the tenant whose data is aimed at; together they fill a pool of some size with it. */
const PLANTED = 6;
const LONG_TOKENS_MAX = 3072;
const LONG_TOKENS_DEFAULT = 1024;
/** Low guess, for endpoints that do not count. */
const CHARACTERS_PER_TOKEN = 2;
/** Requests without an answer, after which no further field is tried. */
const UNANSWERED_MAX = 3;
/** Bursts of both tenants in one room, and the requests of each tenant in one. */
const BURSTS_FINE = 2;
const BURSTS_MAX = 16;
const BURST_EACH = 4;
const HTTP_TOO_MANY = 429;
const THROTTLED_TRIES = 3;
const BACK_OFF_MS_MAX = 2_000;
const CASES_MAX = 64;
const REQUESTS_PER_CASE_MAX = 5;

/** What a field did. `changed-anyway`: the answer differs, and so do those without the field. */
export const FIELD_OUTCOMES = [
  'foreign',
  'effective',
  'ignored',
  'changed-anyway',
  'refused',
  'throttled',
  'server-error',
  'unanswered',
] as const;
export type FieldOutcome = (typeof FIELD_OUTCOMES)[number];

interface FieldTrial {
  readonly name: string;
  readonly outcome: FieldOutcome;
  readonly request: string;
}

interface Prompt {
  readonly needle: Needle;
  readonly text: string;
}

/** Does anything that a request can carry let one tenant name what belongs to another, or to the operator? */
export const handles: Experiment = {
  name: 'handles',
  required: true,
  method: {
    does: "One tenant sends the same small prompt with each field and header by which engines name pages, rooms, slots, sessions, requests and workers, filled with guesses and with another tenant's real ones where the endpoint gives them out, and asks for operators' routes in several spellings.",
    control:
      'The same prompt without any field must give its code back, the same way each time; a path that nobody serves is asked for in each spelling.',
    tells:
      "Whether a field takes effect: another tenant's marker, an answer that changed against the same request without the field, or an operators' route that answers. The defence is one list of fields that are let through, leases that no handle replaces, and no route but those of tenants.",
    limits:
      'A field that is accepted and shows no effect in an answer may still have one inside; guesses are few, and say little about handles that can be guessed with patience.',
  },

  unfit(lab) {
    return lab.target.tenants.length < 2 ? 'it needs two tenants, and one was given' : null;
  },

  plan(lab): ExperimentPlan {
    const long = longTokens(lab) + ANSWER_TOKENS;
    const small = CASES_MAX * REQUESTS_PER_CASE_MAX;
    const burst = BURSTS_MAX * BURST_EACH * 2;
    return {
      requests: PLANTED * 2 + small + burst + routeRequestsMax(lab.options.allowDestructive),
      tokens: (PLANTED * 2 + burst) * long + small * 256,
      seconds: null,
    };
  },

  async run(lab): Promise<ExperimentResult> {
    const trying = new Trying(lab);
    await trying.control();
    await trying.everything();
    return trying.judge(await askRoutes(lab, lab.tenant(1)));
  },
};

function longTokens(lab: Lab): number {
  const limit = lab.knowledge.acceptLimit ?? lab.knowledge.advertised;
  return limit === null ? LONG_TOKENS_DEFAULT : Math.min(LONG_TOKENS_MAX, Math.floor((limit - ANSWER_TOKENS) * 0.8));
}

class Trying {
  readonly #lab: Lab;
  readonly #owner: ProbeTenant;
  readonly #other: ProbeTenant;
  /** The prompt that each field is sent with, and its answer without any. */
  readonly #prompt: Prompt;
  #plainContent: string | null = null;
  #isStable = false;
  #isRecalled = false;
  #planted = 0;
  readonly #theirs: TransferParams[] = [];
  #asksFor: Readonly<Record<string, unknown>> = {};
  #answerId = '';
  #theirNeedle: Needle;
  readonly #trials: FieldTrial[] = [];

  constructor(lab: Lab) {
    this.#lab = lab;
    this.#owner = lab.tenant(0);
    this.#other = lab.tenant(1);
    this.#prompt = this.#newPrompt(this.#other, 0);
    this.#theirNeedle = { name: newName(lab.chance), code: '' };
  }

  async control(): Promise<void> {
    await Promise.all(Array.from({ length: PLANTED }, () => this.#plant()));
    if (this.#theirs.length === 0) {
      // Engines that hand prompts over give parameters out only when asked to.
      this.#asksFor = { kv_transfer_params: { do_remote_decode: true } };
      await this.#plant();
      if (this.#theirs.length === 0) this.#asksFor = {};
    }
    const answers = [await this.#plain(), await this.#plain(), await this.#plain()];
    const first = answers[0]!;
    this.#plainContent = first.content;
    this.#isStable = answers.every((each) => each.outcome === 'answered' && each.content === first.content);
    this.#isRecalled = recalls(first.content, this.#prompt.needle.code, first.finishReason) !== 'no';
  }

  /** Whether an answer that a field changed could be told. Another tenant's marker is one in any case. */
  get #isControlled(): boolean {
    return this.#isStable && this.#isRecalled;
  }

  async everything(): Promise<void> {
    await this.#tryReal();
    await this.#plant();
    const own = (await this.#plain()).transfer ?? null;
    const aim = { answerId: this.#answerId, tenant: this.#owner.name };
    await this.#tryAll([...guessedCases(own), ...otherCases(aim)]);
    for (const name of ID_FIELDS) await this.#tryId(name);
    const sharesRoom = this.#trials.some(({ name, outcome }) => name === 'bootstrap_room' && outcome !== 'refused');
    if (sharesRoom) await this.#bursts();
  }

  /** Handles of prompts that are just over, since whoever is served next writes over what they name; then one that is stale. */
  async #tryReal(): Promise<void> {
    const stale = this.#theirs[0];
    if (stale === undefined) return;
    const count = realCases('', stale).length;
    for (let i = 0; i < count; i++) {
      await this.#plant();
      await this.#tryAll(realCases("another tenant's", this.#theirs.at(-1)!).slice(i, i + 1));
    }
    await this.#tryAll(realCases("another tenant's, stale", stale));
  }

  async #tryAll(cases: readonly FieldCase[]): Promise<void> {
    for (const each of cases) {
      if (this.#unanswered >= UNANSWERED_MAX) return;
      await this.#try(each);
    }
  }

  get #unanswered(): number {
    return this.#trials.filter(({ outcome }) => outcome === 'unanswered').length;
  }

  #newPrompt(tenant: ProbeTenant, fillerCharacters: number): Prompt {
    const { chance, knowledge } = this.#lab;
    const needle = { name: newName(chance), code: this.#lab.marker(tenant) };
    const filler = knowledge.ruler?.filler ?? ' the';
    const text = filler.repeat(Math.ceil(fillerCharacters / filler.length));
    return { needle, text: `Notes.${text}${stated(needle)}${asked(needle)}` };
  }

  #longCharacters(): number {
    return Math.floor(longTokens(this.#lab) * (this.#lab.knowledge.codeCharactersPerToken ?? CHARACTERS_PER_TOKEN));
  }

  /** Of the owner, full of its code. */
  #longPrompt(characters: number): Prompt {
    const needle = { name: newName(this.#lab.chance), code: this.#lab.marker(this.#owner) };
    const line = stated(needle);
    const lines = Math.max(1, Math.floor(characters / line.length) - 1);
    return { needle, text: line.repeat(lines) + asked(needle) };
  }

  async #plant(): Promise<void> {
    const { needle, text } = this.#longPrompt(this.#longCharacters());
    const answer = await this.#send(this.#owner, text, { name: '', kind: 'transfer', fields: this.#asksFor });
    if (answer.outcome !== 'answered') return;
    this.#planted++;
    this.#theirNeedle = needle;
    this.#answerId = answer.strings.get('id') ?? '';
    if (answer.transfer !== null && answer.transfer !== undefined) this.#theirs.push(answer.transfer);
  }

  /** Waits where the endpoint says 429, and asks again a few times. */
  async #send(tenant: ProbeTenant, prompt: string, extra: FieldCase | null): Promise<Answer> {
    const { fields = {}, headers = {} } = extra ?? {};
    const ask = { tenant, prompt, maxTokens: ANSWER_TOKENS, stream: false, deadlineMs: DEADLINE_MS, fields, headers };
    for (let tries = 1; ; tries++) {
      const answer = await this.#lab.ask({ ...ask, returns429: true });
      if (answer.status !== HTTP_TOO_MANY || tries >= THROTTLED_TRIES) return answer;
      await this.#lab.sleep(Math.min(BACK_OFF_MS_MAX, (answer.retryAfterS ?? 1) * 1000));
    }
  }

  #plain(): Promise<Answer> {
    return this.#send(this.#other, this.#prompt.text, null);
  }

  async #try(each: FieldCase): Promise<void> {
    const hitsBefore = this.#lab.hits.length;
    const answer = await this.#send(this.#other, this.#prompt.text, each);
    let outcome = this.#classify(answer, hitsBefore);
    if (outcome === 'effective') outcome = await this.#confirm(each, hitsBefore);
    if (outcome === 'ignored' && (each.kind === 'namespace' || each.kind === 'routing')) {
      // Where it did lead to what the other tenant wrote, the question for its code is answered.
      await this.#send(this.#other, `Notes.${asked(this.#theirNeedle)}`, each);
      if (this.#lab.hits.length > hitsBefore) outcome = 'foreign';
    }
    this.#trials.push({ name: each.name, outcome, request: answer.id });
  }

  #classify(answer: Answer, hitsBefore: number): FieldOutcome {
    if (this.#lab.hits.length > hitsBefore) return 'foreign';
    if (answer.outcome === 'answered') return this.#isSame(answer);
    if (answer.outcome !== 'refused') return 'unanswered';
    const status = answer.status ?? 0;
    if (status === HTTP_TOO_MANY) return 'throttled';
    return status >= 400 && status < 500 ? 'refused' : 'server-error';
  }

  #isSame({ content }: Answer): FieldOutcome {
    if (content === this.#plainContent) return 'ignored';
    return this.#isControlled ? 'effective' : 'changed-anyway';
  }

  /** A change counts where it comes again, and the answers without the field are what they were. */
  async #confirm(each: FieldCase, hitsBefore: number): Promise<FieldOutcome> {
    const before = await this.#plain();
    const again = this.#classify(await this.#send(this.#other, this.#prompt.text, each), hitsBefore);
    if (again === 'foreign') return again;
    const after = await this.#plain();
    const same = before.content === this.#plainContent && after.content === this.#plainContent;
    return again === 'effective' && same ? 'effective' : 'changed-anyway';
  }

  /** The other tenant's id, whole and its beginning, while its request runs. */
  async #tryId(field: (typeof ID_FIELDS)[number]): Promise<void> {
    if (this.#unanswered >= UNANSWERED_MAX) return;
    const id = `probe-${newName(this.#lab.chance)}`;
    const theirs = this.#longPrompt(this.#longCharacters());
    const alone = await this.#send(this.#owner, theirs.text, null);
    const named = (value: string): FieldCase => ({ name: field, kind: 'namespace', fields: { [field]: value } });
    for (const [which, value] of [
      ["another tenant's", id],
      ["the beginning of another tenant's", id.slice(0, -4)],
    ] as const) {
      const hitsBefore = this.#lab.hits.length;
      const [running, answer] = await Promise.all([
        this.#send(this.#owner, theirs.text, named(id)),
        this.#send(this.#other, this.#prompt.text, named(value)),
      ]);
      let outcome = this.#classify(answer, hitsBefore);
      if (outcome === 'effective') outcome = await this.#confirm(named(value), hitsBefore);
      const disturbs = running.outcome !== 'refused' && running.content !== alone.content;
      if (outcome === 'ignored' && disturbs) {
        // The same pair under ids of their own: what differs then as well is no work of the id.
        const [quiet] = await Promise.all([this.#send(this.#owner, theirs.text, named(`${id}x`)), this.#plain()]);
        outcome = quiet.content === alone.content ? 'effective' : 'changed-anyway';
      }
      this.#trials.push({ name: `${field} (${which})`, outcome, request: answer.id });
    }
  }

  /** A few, and more where they don't all end well. */
  async #bursts(): Promise<void> {
    const hitsBefore = this.#lab.hits.length;
    for (let i = 0, fine = 0; i < BURSTS_MAX && fine < BURSTS_FINE; i++) {
      const answers = await this.#burst();
      if (answers.every(({ outcome }) => outcome === 'answered')) fine++;
      if (answers.some(({ outcome }) => outcome === 'hung')) return;
      const hit = this.#lab.hits[hitsBefore];
      if (hit === undefined) continue;
      const name = 'bootstrap_room (both tenants in one)';
      this.#trials.push({ name, outcome: 'foreign', request: hit.request });
      return;
    }
  }

  /** Both tenants at once in one room, with prompts of many lengths, over pages that hold the owner's past. */
  #burst(): Promise<Answer[]> {
    const { chance } = this.#lab;
    const characters = this.#longCharacters();
    const room: FieldCase = { name: '', kind: 'room', fields: SHARED_ROOM };
    const sending: Promise<Answer>[] = [];
    for (let i = 0; i < BURST_EACH; i++) {
      const theirs = this.#longPrompt(chance.below(characters >> 1));
      const own = this.#newPrompt(this.#other, chance.below(characters));
      sending.push(this.#send(this.#other, own.text, room), this.#send(this.#owner, theirs.text, room));
    }
    return Promise.all(sending);
  }

  judge(routes: RouteFindings): ExperimentResult {
    const of = (...outcomes: FieldOutcome[]): FieldTrial[] =>
      this.#trials.filter(({ outcome }) => outcomes.includes(outcome));
    const working = of('foreign', 'effective');
    const hits = Math.max(this.#lab.hits.length, of('foreign').length) + of('effective').length + routes.open.length;
    const untold = of('changed-anyway', 'throttled', 'unanswered');
    const powerless = !this.#isControlled || this.#planted === 0 || untold.length > 0 || routes.unanswered > 0;
    return {
      name: 'handles',
      verdict: hits > 0 ? 'leaks' : powerless ? 'no-power' : 'isolated',
      sent: this.#lab.answers,
      hits,
      bound: null,
      control: this.#controlSentence(),
      evidence: [
        ...working.map(({ name, outcome, request }) => `${name}: ${WORDS[outcome]} (${request}).`),
        ...FIELD_OUTCOMES.filter((outcome) => outcome !== 'foreign' && outcome !== 'effective')
          .map((outcome) => ({ outcome, list: of(outcome) }))
          .filter(({ list }) => list.length > 0)
          .map(({ outcome, list }) => `${WORDS[outcome]}: ${[...new Set(list.map(({ name }) => name))].join(', ')}.`),
        ...routeSentences(routes, this.#lab.options.allowDestructive),
      ],
      figures: { fields: this.#trials.length, working: working.length, routes: routes.asked, open: routes.open.length },
    };
  }

  #controlSentence(): string {
    const code = this.#isRecalled ? 'gave its code back' : 'did not give its code back';
    const same = this.#isStable ? 'the same way three times' : 'and differed when it was asked again';
    const given =
      this.#theirs.length > 0 ? `${this.#theirs.length} real handles were given out` : 'no handle was given out';
    const planted = `${this.#planted} prompts of the other tenant were answered, and ${given}`;
    return `The prompt without any field ${code}, ${same}; ${planted}.`;
  }
}

const WORDS: Readonly<Record<FieldOutcome, string>> = {
  foreign: "another tenant's marker came back",
  effective: 'the answer changed, twice, against the same request without it',
  ignored: 'accepted, no effect seen',
  'changed-anyway': 'not to be told, since answers without it differ too',
  refused: 'refused',
  throttled: 'answered with 429 and not judged',
  'server-error': 'answered with an error of the server, where a refusal was expected',
  unanswered: 'no answer came',
};

function routeSentences({ open, asked: count, serverErrors, unanswered }: RouteFindings, allows: boolean): string[] {
  const sentences = open.map(
    ({ method, path, request }) => `An operators' route answers a tenant: ${method} ${path} (${request}).`,
  );
  if (open.length === 0) sentences.push(`None of ${count} requests for operators' routes was answered with content.`);
  if (serverErrors > 0)
    sentences.push(`${serverErrors} requests for operators' routes were answered with an error of the server.`);
  if (unanswered > 0) sentences.push(`${unanswered} requests for operators' routes got no answer.`);
  if (!allows) sentences.push('Routes that change state were not asked for; that needs --allow-destructive.');
  return sentences;
}
