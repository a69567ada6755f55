import type { Grant, Renewal, Seats } from "./answer.js";
import { between, type Micros, part, SECOND } from "./clocks.js";
import type { Secret } from "./secret.js";

/** Heartbeats come no faster than this, whatever a server says. */
const INTERVAL_MIN = SECOND;
/** The longest timeout of a heartbeat. */
const TIMEOUT_MAX = 10 * SECOND;

/** Returns the interval told, if a heartbeat fits before the TTL; else a third of the TTL. */
function intervalOf(told: Micros | undefined, ttl: Micros): Micros {
  const interval = told !== undefined && told < ttl ? told : Math.floor(ttl / 3);
  return Math.max(interval, INTERVAL_MIN);
}

/** The session of a seat, with the terms of the last answer. */
export class Lease {
  readonly session: string;
  readonly licenseId: string | undefined;
  readonly seats: Seats | undefined;
  /** The code that releases the session without a token. */
  readonly releaseCode: Secret | undefined;
  until: Micros;
  interval: Micros;
  grace: Micros;
  reacquires: boolean;
  #ttl: Micros;

  /** Starts the lease of a grant whose request was sent at `sent`. */
  constructor(grant: Grant, sent: Micros) {
    this.session = grant.session;
    this.licenseId = grant.licenseId;
    this.seats = grant.seats;
    this.releaseCode = grant.releaseCode;
    this.until = sent + grant.expiresIn;
    this.interval = intervalOf(grant.interval, grant.expiresIn);
    this.grace = grant.grace;
    this.reacquires = grant.reacquires;
    this.#ttl = grant.expiresIn;
  }

  /** Counts the TTL anew from `sent`; a late answer to an early request never moves the deadline back. */
  renew(renewal: Renewal, sent: Micros): void {
    const ttl = renewal.expiresIn ?? this.#ttl;
    const until = sent + ttl;
    this.until = ttl < this.#ttl ? until : Math.max(this.until, until);
    this.#ttl = ttl;
    const known = Math.min(this.interval, Math.max(Math.floor(ttl / 3), INTERVAL_MIN));
    this.interval = intervalOf(renewal.interval ?? known, ttl);
    this.grace = renewal.grace ?? this.grace;
    this.reacquires = renewal.reacquires ?? this.reacquires;
  }

  /** Returns 0.3 to 1.0 of the interval after `sent`, so that fleets that started together drift apart. */
  firstBeat(sent: Micros, jitter: number): Micros {
    return sent + part(this.interval, between(0.3, 1.0, jitter));
  }

  /** Returns 0.9 to 1.0 of the interval after `sent`. */
  nextBeat(sent: Micros, jitter: number): Micros {
    return sent + part(this.interval, between(0.9, 1.0, jitter));
  }

  /** The timeout of a heartbeat: a third of the interval, at most 10 s. */
  get timeout(): Micros {
    return Math.min(Math.floor(this.interval / 3), TIMEOUT_MAX);
  }
}
