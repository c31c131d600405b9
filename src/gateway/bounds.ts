/** Every bound of the gateway, with its unit and the reason for its size. */

/** Requests of one tenant that run or wait at once; its own 429 comes here, before anything shared is full. */
export const TENANT_OPEN_MAX = 128;

/** How high that bound can be set; what a queue of one tenant holds at the most. */
export const TENANT_OPEN_BOUND = 4096;

/** Requests of all tenants that wait at once: a few seconds of work for a small engine. */
export const WAITING_MAX = 1024;

/** How long a request waits for its turn. A client that waited longer has usually given up. */
export const WAIT_MS_MAX = 30_000;

/**
 * How many later requests may pass a request that waits for room. Enough to keep small requests moving past a large one, few
 * enough that the large one is served soon: after this many nobody passes it.
 */
export const OVERTAKES_MAX = 4;

/** Seconds in `Retry-After`: fixed, so that it tells a tenant nothing about the others. */
export const RETRY_AFTER_S = 1;

/** Bytes of bodies of one tenant that are held while they are read: eight of the largest. */
export const TENANT_BODY_BYTES_MAX: number = 64 * 1024 * 1024;

/** Keys in all; each is compared with every key that comes. */
export const KEYS_MAX = 1000;

/** Names of tenants that one process may have seen, over all reloads: each keeps its number and its salt. */
export const TENANTS_SEEN_MAX = 10_000;

/** How long a reader may take nothing of its stream before the stream is given up. */
export const STREAM_STALL_MS_MAX = 120_000;

/**
 * After a refusal while the client still sends, what comes is thrown away for this long and this many bytes before the socket
 * is closed: a client that sees a reset while it writes never reads the refusal.
 */
export const LINGER_MS_MAX = 2_000;
export const LINGER_BYTES_MAX: number = 256 * 1024 * 1024;

/** Closing: open requests may finish for this long, then they fail; then sockets are destroyed. Together below 2 s. */
export const CLOSE_GRACE_MS = 1_000;
export const CLOSE_FAIL_MS = 500;

/** Messages of one chat, and stop sequences with their length in characters. */
export const MESSAGES_MAX = 8192;
export const STOPS_MAX = 4;
export const STOP_CHARACTERS_MAX = 256;

/** One self-test for all who ask within this time, and how long it may take. */
export const HEALTH_EVERY_MS = 5_000;
export const HEALTH_MS_MAX = 5_000;

/** Findings of one id that are raised; the counter in the metrics goes on. */
export const FINDINGS_PER_ID_MAX = 32;

/** One reading of the state of the operators' page for all who ask within this time: many open pages cost as much as one. */
export const STATE_EVERY_MS = 500;

/**
 * One sentinel of an engine is in flight at a time, and one begins at most this often, whatever is suspected: suspicion that comes
 * earlier is looked into when the time has come. A tenant that could raise it at will would cost that much and no more.
 */
export const SENTINEL_EVERY_MS = 5_000;

/**
 * From its turn to its end, and for each token of its prompt: a slow engine reads a hundred a second. It waits for the turn as tenants
 * do, so the engine has room for it by then.
 */
export const SENTINEL_MS_MAX = 10_000;
export const SENTINEL_MS_A_TOKEN = 10;

/** A sentinel is as long as the prompt that raised suspicion, up to this, and never longer than what is admitted. */
export const SENTINEL_PROMPT_TOKENS_MAX = 16_384;
export const SENTINEL_OUTPUT_TOKENS = 8;

/** Sentinels in a row that could not be sent; then the engine is out, since what can't be checked must not look clean. */
export const SENTINELS_UNSENT_MAX = 3;

/** Between self-tests of an engine that is out of rotation; doubled after each that fails. */
export const SELF_TEST_MS_MIN = 1_000;
export const SELF_TEST_MS_MAX = 60_000;

/** Self-tests in a row that bring an engine back, by what took it out: a foreign marker is proof, and one good answer refutes none. */
export const PASSES_AFTER_SENTINEL = 1;
export const PASSES_AFTER_PROOF = 3;

/** Markers of past sentinels that answers are still searched for. */
export const SENTINEL_MARKERS_MAX = 64;

/**
 * Requests of one tenant that go on to their first token after their client has left, the tokens of their prompts together, and the
 * time of each: a burst of impatient clients, not a way to keep an engine busy for nobody. Past any of them a request is aborted at once.
 */
export const SHIELDED_MAX = 8;
export const SHIELDED_TOKENS_MAX = 65_536;
export const SHIELDED_MS_MAX = 10_000;

/** While requests wait for an engine its health is looked at this often, and where it is gone they go elsewhere. */
export const HEALTH_POLL_MS = 250;

/** Characters of a prompt that decide which engine has its prefix cached: a system prompt, and not what follows it. */
export const AFFINITY_CHARACTERS = 1024;

/**
 * How much fuller, as a share of its decode pool, the engine that has a prefix cached may be than the least loaded one and still be
 * taken: what a cache hit saves is worth a queue of that length and no longer one.
 */
export const AFFINITY_SLACK_SHARE = 0.25;

/** Between sentinels of an engine that nobody suspects, while tenants send it requests. */
export const PATROL_EVERY_MS = 60_000;
/** Tokens of such a sentinel's prompt: enough for its marker and some text. */
export const PATROL_PROMPT_TOKENS = 128;

/** Characters of a field's path that a refusal repeats. */
export const PARAM_CHARACTERS_MAX = 120;

/** Tools of one request, their names and what they are for; OpenAI's limits, names a little longer. */
export const TOOLS_MAX = 128;
export const TOOL_NAME_CHARACTERS_MAX = 128;
export const TOOL_DESCRIPTION_CHARACTERS_MAX = 16_384;

/** Calls of one answer, and the characters of a call's id. Engines' own ids have some 30. */
export const TOOL_CALLS_MAX = 128;
export const TOOL_CALL_ID_CHARACTERS_MAX = 256;

/** Tokens in `logit_bias`: OpenAI's limit. */
export const LOGIT_BIASES_MAX = 1024;

/** Likeliest tokens at one place: OpenAI's limit. */
export const TOP_LOGPROBS_MAX = 20;

/** Images, sound and files in one request, and the characters of their base64 together: 4.5 MB of data. */
export const DATA_PARTS_MAX = 64;
export const DATA_CHARACTERS_MAX: number = 6 * 1024 * 1024;

/** Live markers that operators give: an index of them is made in well under a second, at the start and at a reload. */
export const MARKERS_GIVEN_MAX = 10_000;
