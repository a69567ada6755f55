import { between, type Micros, part, SECOND } from "./clocks.js";

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
  afterFailure(now: Micros, interval: Micros, retryAfter: Micros | undefined, jitter: number): Micros {
    const doubled = BACKOFF_FIRST * 2 ** Math.min(this.#failures, 16);
    const backoff = part(Math.min(doubled, Math.floor(interval / 4)), jitter);
    this.#failures += 1;
    const soonest = now + Math.max(backoff, retryAfter ?? 0);
    const [oldest] = this.#sent;
    return this.#sent.length < TRIES_MAX || oldest === undefined ? soonest : Math.max(soonest, oldest + interval);
  }
}

/** Returns the time of the next try after an answer that a quick retry cannot change. */
export function afterHopeless(now: Micros, interval: Micros, jitter: number): Micros {
  return now + part(interval, between(0.9, 1.0, jitter));
}
