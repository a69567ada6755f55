import type { Terms } from "./answer.js";
import { jittered, type Micros, SECOND } from "./clocks.js";

/** Heartbeats come no faster than this, whatever a server says. */
const INTERVAL_MIN = SECOND;
/** The longest timeout of a heartbeat. */
const TIMEOUT_MAX = 10 * SECOND;

/** The session of a seat, with the terms of the last answer. */
export class Lease {
  until!: Micros;
  interval: Micros = Infinity;
  grace: Micros = 0;
  /** False if only the program may acquire again after `expired`. */
  reacquires = true;
  #ttl!: Micros;

  /** Starts the lease of a grant whose request was sent at `sent`. */
  constructor(
    readonly grant: Terms,
    sent: Micros,
  ) {
    this.renew(grant, sent);
  }

  /** Counts the TTL anew from `sent`. Requests are sent one after the other, so `sent` never goes back. */
  renew(terms: Terms, sent: Micros): void {
    const ttl = terms.expiresIn ?? this.#ttl;
    const third = Math.max(Math.floor(ttl / 3), INTERVAL_MIN);
    this.until = sent + ttl;
    this.#ttl = ttl;
    const told = terms.interval ?? Math.min(this.interval, third);
    // A heartbeat must fit before the TTL.
    this.interval = told < ttl ? Math.max(told, INTERVAL_MIN) : third;
    this.grace = terms.grace ?? this.grace;
    this.reacquires = terms.reacquires ?? this.reacquires;
  }

  /** Returns the time of a heartbeat: `low` to 1.0 of the interval after `sent`. */
  nextBeat(sent: Micros, low: number, jitter: number): Micros {
    return sent + jittered(this.interval, low, 1, jitter);
  }

  /** The timeout of a heartbeat: a third of the interval, at most 10 s. */
  get timeout(): Micros {
    return Math.min(Math.floor(this.interval / 3), TIMEOUT_MAX);
  }
}
