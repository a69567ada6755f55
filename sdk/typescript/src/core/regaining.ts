import { TIMEOUT } from "./acquiring.js";
import { goneReason, readAcquire, readHeartbeat, type Setback } from "./answer.js";
import { earliest, type Micros } from "./clocks.js";
import { Ended } from "./ended.js";
import type { Event } from "./events.js";
import { cancel, type Context, type Exchange, refreshToken, type Reply, send, take, waiting, wakeAt } from "./exchange.js";
import { Holding } from "./holding.js";
import type { Lease } from "./lease.js";
import { afterFailure, afterSetback, known, type Orphan, UNKNOWN } from "./orphan.js";
import type { Phase } from "./phase.js";
import type { Problem } from "./problem.js";
import { releaseAcquire, releaseSession } from "./releasing.js";
import { acquire, heartbeat } from "./request.js";
import { afterHopeless, type Retry } from "./retry.js";
import { type LossReason, lost, type State } from "./state.js";

/** The reported state during the acquire. */
type Face =
  /** The host just woke; the first answer decides. */
  | { readonly kind: "offline"; readonly since: Micros }
  /** The vendor lets the program go on until `turnAt`. */
  | { readonly kind: "grace"; readonly turnAt: Micros }
  /** The server ended the session; the loss is told at `turnAt`. */
  | { readonly kind: "reacquiring"; readonly turnAt: Micros }
  /** The loss was told; tries go on. */
  | { readonly kind: "lost" };

/** A seat that has to be acquired again, after an ended session or a passed deadline. */
export class Regaining implements Phase {
  #exchange: Exchange;
  #reason: LossReason = "deadline";
  #face: Face;
  #orphan: Orphan;

  constructor(
    /** The last lease, whose session may be over. */
    readonly lease: Lease,
    private readonly retry: Retry,
    /** The begin of the outage. */
    private readonly since: Micros,
    private isRefused: boolean,
  ) {
    this.#exchange = waiting(lease.until);
    this.#face = { kind: "offline", since };
    this.#orphan = known(lease);
  }

  /** Asks at once after a sleep past the deadline. */
  afterSleep(context: Context): Phase {
    this.#exchange = this.#ask(false, context);
    return this;
  }

  /** The server ended the session: asks at `at`, or at once. */
  afterEnd(reason: LossReason, at: Micros | undefined, context: Context): Phase {
    this.#face = { kind: "reacquiring", turnAt: Math.max(this.lease.until, context.now + this.lease.interval) };
    this.#reason = reason;
    this.#orphan = undefined;
    this.#exchange = at === undefined ? this.#ask(false, context) : waiting(at);
    return this;
  }

  /** The deadline passed during an outage: grace, or the loss. */
  afterOutage(context: Context): Phase {
    return this.#failed(undefined, context);
  }

  get state(): State {
    switch (this.#face.kind) {
      case "offline":
        return { kind: "offline", since: this.#face.since, until: this.lease.until };
      case "grace":
        return { kind: "grace", until: this.#face.turnAt };
      case "reacquiring":
        return { kind: "reacquiring" };
      case "lost":
        return lost(this.#reason, undefined, true);
    }
  }

  get wakeAt(): Micros | undefined {
    const turnAt = "turnAt" in this.#face ? this.#face.turnAt : undefined;
    return earliest(wakeAt(this.#exchange), turnAt);
  }

  wake(context: Context): Phase {
    if (cancel(this.#exchange, context) && !this.#onlyRenews) this.#orphan = UNKNOWN;
    this.#exchange = this.#ask(false, context);
    return this;
  }

  step(event: Event, context: Context): Phase {
    if (event.kind === "release") return this.#release(context);
    const phase = this.#take(event, context);
    return phase === this ? this.#turn(context) : phase;
  }

  /** Ends the session: the last one by its id, or the one that an acquire in flight may bring. */
  #release(context: Context): Phase {
    return this.#onlyRenews
      ? releaseSession(this.lease, this.#exchange, context)
      : releaseAcquire(this.#exchange, this.#orphan, context);
  }

  #take(event: Event, context: Context): Phase {
    const outcome = take(this.#exchange, event, context);
    switch (outcome?.kind) {
      case "due":
        this.#exchange = this.#ask(outcome.refreshed, context);
        return this;
      case "reply":
        return this.#answered(outcome, context);
      case "failed":
        if (!this.#onlyRenews) this.#orphan = afterFailure(this.#orphan, outcome.failure);
        return this.#failed(undefined, context);
      case undefined:
        return this;
    }
  }

  #answered(reply: Reply, context: Context): Phase {
    const answer = this.#onlyRenews ? readHeartbeat(reply.response) : readAcquire(reply.response);
    switch (answer.kind) {
      case "grant":
        return Holding.granted(answer, reply.sent, this.retry, context);
      case "renewal":
        return Holding.resumed(this.lease, answer, reply.sent, this.retry, context);
      default:
        if (!this.#onlyRenews) this.#orphan = afterSetback(this.#orphan, answer, context.plan.door);
        return this.#setBack(answer, reply, context);
    }
  }

  #setBack(setback: Setback, reply: Reply, context: Context): Phase {
    switch (setback.kind) {
      case "transient":
        return this.#failed(setback.retryAfter, context);
      case "hopeless":
        if (this.#onlyRenews) this.isRefused = false;
        return this.#hopeless(context);
      case "unauthenticated":
        if (!reply.refreshed) {
          this.#exchange = refreshToken(context);
          return this;
        }
        this.isRefused = true;
        return this.#failed(undefined, context);
      case "refused":
        return this.#onlyRenews
          ? this.#heartbeatRefused(setback.problem, context)
          : new Ended(lost(this.#reason, undefined, false, setback.problem.requestId), this.#orphan);
    }
  }

  #heartbeatRefused(problem: Problem, context: Context): Phase {
    switch (problem.status) {
      case 403:
        return new Ended(lost("unauthorized", undefined, false, problem.requestId), this.#orphan);
      case 404:
        return new Ended(lost("not_found", undefined, false, problem.requestId));
      case 410:
        return new Ended(lost(goneReason(problem), problem.by, false, problem.requestId));
      default:
        this.isRefused = true;
        return this.#hopeless(context);
    }
  }

  #hopeless(context: Context): Phase {
    this.#exchange = waiting(afterHopeless(context.now, this.lease.interval, context.jitter));
    return this.#unreached(context);
  }

  /** The vendor forbids a second session, so the machine may only renew the first. */
  get #onlyRenews(): boolean {
    return !this.lease.reacquires;
  }

  #failed(retryAfter: Micros | undefined, context: Context): Phase {
    this.#exchange = waiting(this.retry.afterFailure(context.now, this.lease.interval, retryAfter, context.jitter));
    return this.#unreached(context);
  }

  /** Handles a try without a decision. After a sleep the first such try starts the grace or tells the loss. */
  #unreached(context: Context): Phase {
    const turnAt = this.lease.until + this.lease.grace;
    if (this.#face.kind === "offline") {
      const hasGrace = !this.isRefused && !context.passed(turnAt);
      this.#face = hasGrace ? { kind: "grace", turnAt } : { kind: "lost" };
    } else if (this.#face.kind === "grace" && this.isRefused) {
      this.#face = { kind: "lost" };
    }
    return this.#turn(context);
  }

  /** Tells the loss at the end of the grace or of the time to acquire again. */
  #turn(context: Context): Phase {
    if ("turnAt" in this.#face && context.passed(this.#face.turnAt)) this.#face = { kind: "lost" };
    if (this.#face.kind === "lost" && this.#onlyRenews) {
      cancel(this.#exchange, context);
      return new Ended(lost(this.#reason, undefined, false), this.#orphan);
    }
    return this;
  }

  #ask(refreshed: boolean, context: Context): Exchange {
    const { door } = context.plan;
    const call = this.#onlyRenews
      ? heartbeat(door, this.lease.session, context.away(this.since))
      : acquire(door, context.lastSession);
    return send(call, TIMEOUT, refreshed, this.retry, context);
  }
}
