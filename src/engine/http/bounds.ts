/** Every bound of the engine's HTTP side, with its unit and the reason for its size. */

/** Legs that wait for their partner, on both listeners together: each holds a socket and its prompt. */
export const LEGS_WAITING_MAX = 1024;

/** How long a leg waits for its partner. Routers send both at once; SGLang itself waits 300 s, and holds pages meanwhile. */
export const PARTNER_MS_MAX = 30_000;

/** Failed rooms that are remembered, so that the partner hears the first leg's error; the oldest go first. */
export const FAILED_ROOMS_MAX = 1024;

/** How long a reader may take nothing of its stream before the stream is given up: its pages are held all the while. */
export const STALL_MS_MAX = 60_000;

/** Closing: open requests may finish for this long, then they fail; then sockets are destroyed. The engine's own close comes after. */
export const CLOSE_GRACE_MS = 200;
export const CLOSE_DESTROY_MS = 500;

/** How long the token of `/health_generate` may take. */
export const HEALTH_MS_MAX = 5_000;

/** Stop sequences of one request, and their length in characters. */
export const STOPS_MAX = 16;
export const STOP_CHARACTERS_MAX = 256;

/** Characters of a client's `model` and `rid`, which are repeated in its answer. */
export const ECHO_CHARACTERS_MAX = 256;

/** Seconds in `Retry-After` where the engine is full. */
export const RETRY_AFTER_S = 1;

/** Tokens a second are averaged over so many seconds. */
export const THROUGHPUT_WINDOW_S = 10;
