import { jittered, type Micros, NEVER, SECOND } from "./clocks.js";

/** Requests of one seat within any interval. */
const TRIES_MAX = 8;
/** The longest backoff before the second try; each later backoff doubles. */
const BACKOFF_FIRST = SECOND;
/**
 * The shortest wait that the end of a seat leaves of a longer `Retry-After`: an answer needs its time, and ever shorter halves of
 * the rest would spend the tries of an interval.
 */
const WAIT_MIN = SECOND;

/** The latest requests of one seat, and the failures since the last success. */
export class Retry {
  /** The times of the latest requests, the oldest first; before the first requests the begin of time. */
  #sent: readonly Micros[] = Array<Micros>(TRIES_MAX).fill(-NEVER);
  /** The failures since the last success: zero starts the backoff anew. The bound on tries stays in force. */
  failures = 0;

  /** Returns true if a request at `now` would be the ninth within an interval. */
  isSpent(now: Micros, interval: Micros): boolean {
    return now < this.#sent[0]! + interval;
  }

  /** Counts a request that is sent now. */
  count(now: Micros): void {
    this.#sent = [...this.#sent.slice(1), now];
  }

  /**
   * Returns the time of the next try: `retryAfter` or a backoff, whichever is longer, within the bound on tries. Of `retryAfter`
   * a holder waits half of the time to `end` at most: a holder that waits past `end` loses a seat that the server keeps.
   */
  afterFailure(now: Micros, interval: Micros, retryAfter: Micros, end: Micros, jitter: number): Micros {
    const pause = Math.min(retryAfter, Math.max(Math.floor((end - now) / 2), WAIT_MIN));
    return Math.max(now + backoff(this.failures++, interval / 4, jitter), now + pause, this.#sent[0]! + interval);
  }
}

/** Returns the wait after a number of earlier failures: a random part of a span that doubles up to `max`. */
export function backoff(failures: number, max: Micros, jitter: number): Micros {
  return jittered(Math.min(BACKOFF_FIRST * 2 ** failures, max), 0, 1, jitter);
}
