import { jittered, type Micros, NEVER, SECOND } from "./clocks.js";

/** Requests of one seat within any interval. */
const TRIES_MAX = 8;
/** The longest backoff before the second try; each later backoff doubles. */
const BACKOFF_FIRST = SECOND;

/** The latest requests of one seat, and the failures since the last success. */
export class Retry {
  /** The times of the latest requests, the oldest first; before the first requests the begin of time. */
  #sent: readonly Micros[] = Array<Micros>(TRIES_MAX).fill(-NEVER);
  /** The failures since the last success: zero starts the backoff anew. The bound on tries stays in force. */
  failures = 0;

  /** Counts a request that is sent now. */
  count(now: Micros): void {
    this.#sent = [...this.#sent.slice(1), now];
  }

  /** Returns the time of the next try: `retryAfter` or a backoff, whichever is longer, within the bound on tries. */
  afterFailure(now: Micros, interval: Micros, retryAfter: Micros, jitter: number): Micros {
    const backoff = Math.min(BACKOFF_FIRST * 2 ** this.failures++, Math.floor(interval / 4));
    return Math.max(now + jittered(backoff, 0, 1, jitter), now + retryAfter, this.#sent[0]! + interval);
  }
}
