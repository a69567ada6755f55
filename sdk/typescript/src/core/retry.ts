import { jittered, type Micros, SECOND } from "./clocks.js";

/** Requests of one seat within any interval. */
const TRIES_MAX = 8;
/** The longest backoff before the second try; each later backoff doubles. */
const BACKOFF_FIRST = SECOND;

/** The latest requests of one seat, and the failures since the last success. */
export class Retry {
  readonly #sent: Micros[] = [];
  #failures = 0;

  /** Counts a request that is sent now. */
  count(now: Micros): void {
    this.#sent.push(now);
    if (this.#sent.length > TRIES_MAX) this.#sent.shift();
  }

  /** Starts the backoff anew; the bound on tries stays in force. */
  succeed(): void {
    this.#failures = 0;
  }

  /** Returns the time of the next try: `retryAfter` or a backoff, whichever is longer, within the bound on tries. */
  afterFailure(now: Micros, interval: Micros, retryAfter: Micros, jitter: number): Micros {
    const backoff = Math.min(BACKOFF_FIRST * 2 ** this.#failures, Math.floor(interval / 4));
    this.#failures += 1;
    const soonest = now + Math.max(jittered(backoff, 0, 1, jitter), retryAfter);
    return this.#sent.length < TRIES_MAX ? soonest : Math.max(soonest, this.#sent[0]! + interval);
  }
}
