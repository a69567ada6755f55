import { goneReason, type Grant, readHeartbeat, type Renewal } from "./answer.js";
import { earliest, type Micros, part, SECOND } from "./clocks.js";
import { Ended } from "./ended.js";
import type { Event, SessionEnd } from "./events.js";
import { cancel, type Context, type Exchange, refreshToken, type Reply, send, take, waiting, wakeAt } from "./exchange.js";
import { Lease } from "./lease.js";
import { known } from "./orphan.js";
import type { Phase } from "./phase.js";
import type { Problem } from "./problem.js";
import { Regaining } from "./regaining.js";
import { releaseSession } from "./releasing.js";
import { heartbeat } from "./request.js";
import { afterHopeless, type Retry } from "./retry.js";
import { lost, type State } from "./state.js";

/** Holders of expired sessions acquire again within this. */
const SPREAD = 5 * SECOND;

/** A seat before its deadline: heartbeats, and the report of an outage. */
export class Holding implements Phase {
  #exchange: Exchange;
  /** Heartbeats fail; the outage is told at this time. */
  #tellAt: Micros | undefined;
  /** The outage was told, and began at this time. */
  #offlineSince: Micros | undefined;
  /** The last answer was a refusal: a later outage has no grace. */
  #isRefused = false;
  /** An end from the event stream, before a heartbeat confirms. */
  #toldEnd: SessionEnd | undefined;
  readonly #retry: Retry;
  /** The time at which the next heartbeat is, or was, due. */
  #due: Micros;

  private constructor(
    readonly lease: Lease,
    due: Micros,
    retry: Retry,
  ) {
    retry.succeed();
    this.#retry = retry;
    this.#due = due;
    this.#exchange = waiting(due);
  }

  /** Starts with the grant of an acquire that was sent at `sent`. */
  static granted(grant: Grant, sent: Micros, retry: Retry, context: Context): Holding {
    const lease = new Lease(grant, sent);
    return new Holding(lease, lease.firstBeat(sent, context.jitter), retry);
  }

  /** Goes on with a session that a heartbeat renewed after its deadline. */
  static resumed(lease: Lease, renewal: Renewal, sent: Micros, retry: Retry, context: Context): Holding {
    lease.renew(renewal, sent);
    return new Holding(lease, lease.nextBeat(sent, context.jitter), retry);
  }

  get state(): State {
    const { until } = this.lease;
    const since = this.#offlineSince;
    return since === undefined ? { kind: "active", until } : { kind: "offline", since, until };
  }

  get wakeAt(): Micros | undefined {
    return earliest(wakeAt(this.#exchange), this.#tellAt, this.lease.until);
  }

  wake(context: Context): Phase {
    cancel(this.#exchange, context);
    this.#tellAt = undefined;
    this.#offlineSince ??= context.now;
    if (context.passed(this.lease.until)) return this.#regaining().afterSleep(context);
    this.#exchange = this.#beat(false, context);
    return this;
  }

  step(event: Event, context: Context): Phase {
    if (event.kind === "release") return releaseSession(this.lease, this.#exchange, context);
    // Before the heartbeat, which tells the time of the outage.
    this.#tellOutage(context);
    if (event.kind === "ended") return this.#ended(event, context);
    const phase = this.#take(event, context);
    if (phase !== this) return phase;
    if (context.passed(this.lease.until)) {
      cancel(this.#exchange, context);
      return this.#regaining().afterOutage(context);
    }
    this.#tellOutage(context);
    return this;
  }

  #tellOutage(context: Context): void {
    if (this.#tellAt === undefined || !context.passed(this.#tellAt)) return;
    this.#tellAt = undefined;
    this.#offlineSince = this.#due;
  }

  #take(event: Event, context: Context): Phase {
    const outcome = take(this.#exchange, event, context);
    switch (outcome?.kind) {
      case "due":
        if (!context.passed(this.lease.until)) this.#exchange = this.#beat(outcome.refreshed, context);
        return this;
      case "reply":
        return this.#answered(outcome, context);
      case "failed":
        return this.#failed(undefined, context);
      case undefined:
        return this;
    }
  }

  #beat(refreshed: boolean, context: Context): Exchange {
    const call = heartbeat(context.plan.door, this.lease.session, context.away(this.#offlineSince));
    return send(call, this.lease.timeout, refreshed, this.#retry, context);
  }

  #answered(reply: Reply, context: Context): Phase {
    const answer = readHeartbeat(reply.response);
    switch (answer.kind) {
      case "renewal":
        this.#renewed(answer, reply.sent, context);
        return this;
      case "transient":
        return this.#failed(answer.retryAfter, context);
      case "unauthenticated":
        if (!reply.refreshed) {
          this.#exchange = refreshToken(context);
          return this;
        }
        this.#isRefused = true;
        return this.#failed(undefined, context);
      case "hopeless":
        return this.#hopeless(false, context);
      case "refused":
        return this.#refused(answer.problem, context);
    }
  }

  #renewed(renewal: Renewal, sent: Micros, context: Context): void {
    this.lease.renew(renewal, sent);
    this.#retry.succeed();
    this.#tellAt = this.#offlineSince = this.#toldEnd = undefined;
    this.#isRefused = false;
    this.#due = this.lease.nextBeat(sent, context.jitter);
    this.#exchange = waiting(this.#due);
  }

  #refused(problem: Problem, context: Context): Phase {
    switch (problem.status) {
      case 403:
        return new Ended(lost("unauthorized", undefined, false, problem.requestId), known(this.lease));
      case 404:
        return this.#over("not_found", undefined, problem.requestId, context);
      case 410:
        return this.#gone(goneReason(problem), problem.by, problem.requestId, context);
      default:
        return this.#hopeless(true, context);
    }
  }

  /** The server confirms the end. The stream may know the cause that the answer leaves out. */
  #gone(reason: string, by: string | undefined, requestId: string | undefined, context: Context): Phase {
    const end = this.#toldEnd;
    return this.#over(reason, by ?? (end?.reason === reason ? end.by : undefined), requestId, context);
  }

  #hopeless(isRefused: boolean, context: Context): Phase {
    this.#isRefused = isRefused;
    this.#fail();
    this.#exchange = waiting(afterHopeless(context.now, this.lease.interval, context.jitter));
    return this;
  }

  /** The session is over: acquires again where the policy allows. */
  #over(reason: string, by: string | undefined, requestId: string | undefined, context: Context): Phase {
    if (this.lease.reacquires && reason === "expired") {
      return this.#regaining().afterEnd(reason, context.now + part(SPREAD, context.jitter), context);
    }
    if (this.lease.reacquires && reason === "not_found") return this.#regaining().afterEnd(reason, undefined, context);
    return new Ended(lost(reason, by, false, requestId));
  }

  #failed(retryAfter: Micros | undefined, context: Context): Phase {
    const end = this.#toldEnd;
    this.#toldEnd = undefined;
    // No answer contradicts the stream.
    if (end !== undefined) return this.#over(end.reason, end.by, undefined, context);
    this.#fail();
    this.#exchange = waiting(
      this.#retry.afterFailure(context.now, this.lease.interval, retryAfter, context.jitter),
    );
    return this;
  }

  /** Notes that a heartbeat failed; the outage is told once the heartbeat is half an interval late. */
  #fail(): void {
    if (this.#offlineSince === undefined) this.#tellAt ??= this.#due + Math.floor(this.lease.interval / 2);
  }

  /** Confirms an end from the event stream by a heartbeat: a stream may lag behind the session. */
  #ended(end: SessionEnd, context: Context): Phase {
    if (end.session !== this.lease.session) return this;
    cancel(this.#exchange, context);
    this.#toldEnd = end;
    this.#exchange = this.#beat(false, context);
    return this;
  }

  #regaining(): Regaining {
    return new Regaining(this.lease, this.#retry, this.#offlineSince ?? this.#due, this.#isRefused);
  }
}
