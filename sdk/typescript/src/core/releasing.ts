/**
 * Release: one retry within a budget of two seconds, and no heartbeat after the call.
 *
 * A session with a known id is deleted, or released by its code if the server accepts no token. After a lost reply to an acquire the id is unknown: one more acquire, which is
 * idempotent by holder, tells the id. `given-back` rests on the server's word, or on a holder that has sent nothing that
 * could have taken a seat.
 */

import { type Grant, readAcquire } from "./answer.js";
import { type Micros, SECOND } from "./clocks.js";
import { released } from "./ended.js";
import type { Event } from "./events.js";
import { cancel, type Context, type Exchange, refreshToken, type Reply, send, take } from "./exchange.js";
import type { Lease } from "./lease.js";
import { afterFailure, afterSetback, known, type Orphan, UNKNOWN } from "./orphan.js";
import type { Phase } from "./phase.js";
import { acquire, release, releaseByCode, type Response } from "./request.js";
import { Retry } from "./retry.js";
import type { State } from "./state.js";

/** The budget of a release, retry included. */
const BUDGET = 2 * SECOND;
/** The timeout of one try: half of the budget, which leaves time for the retry. */
const TIMEOUT = SECOND;
/** The acquires that a release sends to learn the id of a session: one, and one retry. */
const FINDS_MAX = 2;

/** Cancels the heartbeat in flight, then releases the session of `lease`. */
export function releaseSession(lease: Lease, exchange: Exchange, context: Context): Phase {
  cancel(exchange, context);
  return releaseOrphan(known(lease), context);
}

/** Waits for the acquire in flight, and releases its session or `orphan`. */
export function releaseAcquire(exchange: Exchange, orphan: Orphan, context: Context): Phase {
  if (exchange.kind === "in-flight") return new Finding(exchange, orphan, 0, context.now + BUDGET);
  return releaseOrphan(orphan, context);
}

/** Releases a session that may live at the server. Nothing is sent if there is none. */
export function releaseOrphan(orphan: Orphan, context: Context): Phase {
  return pursue(orphan, 0, context.now + BUDGET, context);
}

/** Deletes a known session, asks for the id of an unknown one, or finishes. */
function pursue(orphan: Orphan, finds: number, over: Micros, context: Context): Phase {
  if (orphan === undefined) return released("given-back", undefined, context);
  if (orphan.kind === "known") return new Deleting(orphan, over, context);
  if (finds >= FINDS_MAX || !mayFind(context)) return released("unconfirmed", orphan, context);
  return new Finding(find(false, context), orphan, finds + 1, over);
}

/** Returns false for a device: an admission may evict another device. */
function mayFind({ plan }: Context): boolean {
  return plan.door.api === "licenses";
}

function find(refreshed: boolean, context: Context): Exchange {
  return send(acquire(context.plan.door, context.lastSession), TIMEOUT, refreshed, new Retry(), context);
}

/**
 * An acquire is in flight, whose session must be released: an acquire of the program, or one that the release sent to learn
 * the id of a session.
 */
class Finding implements Phase {
  readonly state: State = { kind: "released" };
  #exchange: Exchange;
  /** The session to release without a grant. */
  #orphan: Orphan;

  constructor(
    exchange: Exchange,
    orphan: Orphan,
    /** The acquires that the release has sent. */
    private readonly finds: number,
    readonly wakeAt: Micros,
  ) {
    this.#exchange = exchange;
    this.#orphan = orphan;
  }

  wake(): Phase {
    return this;
  }

  step(event: Event, context: Context): Phase {
    if (context.passed(this.wakeAt)) {
      return released("unconfirmed", cancel(this.#exchange, context) ? UNKNOWN : this.#orphan, context);
    }
    const outcome = take(this.#exchange, event, context);
    switch (outcome?.kind) {
      case "due":
        this.#exchange = find(outcome.refreshed, context);
        return this;
      case "reply":
        return this.#answered(outcome, context);
      case "failed":
        this.#orphan = afterFailure(this.#orphan, outcome.failure);
        return pursue(this.#orphan, this.finds, this.wakeAt, context);
      case undefined:
        return this;
    }
  }

  #answered(reply: Reply, context: Context): Phase {
    const answer = readAcquire(reply.response);
    if (answer.kind === "grant") return new Deleting(answer, this.wakeAt, context);
    this.#orphan = afterSetback(this.#orphan, answer, context.plan.door);
    const isUnknown = this.#orphan?.kind === "unknown" && mayFind(context);
    if (answer.kind === "unauthenticated" && isUnknown && !reply.refreshed) {
      this.#exchange = refreshToken(context);
      return this;
    }
    // Another acquire would be answered like one that is not transient.
    return pursue(this.#orphan, answer.kind === "transient" ? this.finds : FINDS_MAX, this.wakeAt, context);
  }
}

/** The session is being released: by the token, and without an accepted token by the release code. */
class Deleting implements Phase {
  readonly state: State = { kind: "released" };
  #exchange: Exchange;
  #isRetried = false;
  /** The request in flight has the release code, and is the last. */
  #isByCode = false;

  constructor(
    private readonly target: Pick<Grant, "session" | "releaseCode">,
    readonly wakeAt: Micros,
    context: Context,
  ) {
    this.#exchange = this.#delete(false, context);
  }

  wake(): Phase {
    return this;
  }

  step(event: Event, context: Context): Phase {
    if (context.passed(this.wakeAt)) {
      cancel(this.#exchange, context);
      return this.#unconfirmed(context);
    }
    const outcome = take(this.#exchange, event, context);
    // The server answers 204 to a wrong code as well.
    if (outcome !== undefined && this.#isByCode) return this.#unconfirmed(context);
    switch (outcome?.kind) {
      case "due":
        this.#isRetried = true;
        this.#exchange = this.#delete(outcome.refreshed, context);
        return this;
      case "reply":
        return this.#answered(outcome.response, outcome.refreshed, context);
      case "failed":
        if (outcome.failure === "no-token" && this.#sendCode(context)) return this;
        return this.#again(context);
      case undefined:
        return this;
    }
  }

  #answered({ status }: Response, refreshed: boolean, context: Context): Phase {
    if ((status >= 200 && status <= 299) || status === 404 || status === 410) return released("given-back", undefined, context);
    if (status === 401 && !refreshed && !this.#isRetried) {
      this.#exchange = refreshToken(context);
      return this;
    }
    if (status === 401 && this.#sendCode(context)) return this;
    if (status === 408 || status === 429 || (status >= 500 && status <= 599)) return this.#again(context);
    return this.#unconfirmed(context);
  }

  #again(context: Context): Phase {
    if (this.#isRetried) return this.#unconfirmed(context);
    this.#isRetried = true;
    this.#exchange = this.#delete(false, context);
    return this;
  }

  #unconfirmed(context: Context): Phase {
    return released("unconfirmed", known(this.target), context);
  }

  #delete(refreshed: boolean, context: Context): Exchange {
    return send(release(context.plan.door, this.target.session), TIMEOUT, refreshed, new Retry(), context);
  }

  /** Sends the release code, once; returns false if the server gave none. */
  #sendCode(context: Context): boolean {
    const { session, releaseCode } = this.target;
    if (releaseCode === undefined) return false;
    this.#isByCode = true;
    this.#exchange = send(releaseByCode(context.plan.door, session, releaseCode), TIMEOUT, false, new Retry(), context);
    return true;
  }
}
