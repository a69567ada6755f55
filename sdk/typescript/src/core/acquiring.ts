import { readAcquire } from "./answer.js";
import { between, type Micros, part, SECOND } from "./clocks.js";
import { Ended } from "./ended.js";
import type { Event } from "./events.js";
import { cancel, type Context, type Exchange, refreshToken, type Reply, send, take, waiting, wakeAt } from "./exchange.js";
import { Holding } from "./holding.js";
import { afterFailure, afterSetback, type Orphan, UNKNOWN } from "./orphan.js";
import type { Phase } from "./phase.js";
import { pauseOf, type Problem } from "./problem.js";
import { releaseAcquire } from "./releasing.js";
import { acquire, type Failure } from "./request.js";
import { Retry } from "./retry.js";
import { denied, type State, unreachable } from "./state.js";

/** The interval that bounds retries before the first grant. */
const INTERVAL = 60 * SECOND;
/** The timeout of an acquire: longer than a server's own limit on a commit. */
export const TIMEOUT = 10 * SECOND;
/** The pause after a denial without `retry_after_seconds`. */
const PAUSE = 10 * SECOND;

/** An acquire under way: asks until the server grants or refuses a seat, or the wait is over. */
export class Acquiring implements Phase {
  readonly state: State = { kind: "acquiring" };
  readonly #retry = new Retry();
  readonly #began: Micros;
  #exchange: Exchange;
  /** The try under way is the last one. */
  #isLast = false;

  /** The session that a lost reply, or an earlier life of the machine, may have left at the server. */
  #orphan: Orphan;

  /** Sends the first request. */
  constructor(orphan: Orphan, context: Context) {
    this.#orphan = orphan;
    this.#began = context.now;
    this.#exchange = this.#ask(false, context);
  }

  get wakeAt(): Micros | undefined {
    // The driver ends a request in flight by timeout.
    return wakeAt(this.#exchange);
  }

  wake(context: Context): Phase {
    if (cancel(this.#exchange, context)) this.#orphan = UNKNOWN;
    this.#exchange = this.#ask(false, context);
    return this;
  }

  step(event: Event, context: Context): Phase {
    if (event.kind === "release") return releaseAcquire(this.#exchange, this.#orphan, context);
    const outcome = take(this.#exchange, event, context);
    switch (outcome?.kind) {
      case "due":
        this.#exchange = this.#ask(outcome.refreshed, context);
        return this;
      case "reply":
        return this.#answered(outcome, context);
      case "failed":
        this.#orphan = afterFailure(this.#orphan, outcome.failure);
        return this.#failed(outcome.failure, undefined, undefined, context);
      case undefined:
        return this;
    }
  }

  #answered(reply: Reply, context: Context): Phase {
    const answer = readAcquire(reply.response);
    if (answer.kind === "grant") return Holding.granted(answer, reply.sent, this.#retry, context);
    this.#orphan = afterSetback(this.#orphan, answer, context.plan.door);
    switch (answer.kind) {
      case "transient":
        return this.#failed(answer.failure, answer.retryAfter, answer.requestId, context);
      case "hopeless":
        return this.#ended(unreachable("unavailable", answer.requestId));
      case "unauthenticated":
        if (reply.refreshed) return this.#ended(denied(answer.problem));
        this.#exchange = refreshToken(context);
        return this;
      case "refused":
        return answer.problem.code === context.plan.door.full
          ? this.#full(answer.problem, context)
          : this.#ended(denied(answer.problem));
    }
  }

  /** Every seat is in use: asks again when the server says, and a last time when the wait is over. */
  #full(problem: Problem, context: Context): Phase {
    const over = this.#over(context);
    if (over === undefined || context.passed(over)) return this.#ended(denied(problem));
    this.#retry.succeed();
    const pause = part(Math.max(pauseOf(problem) ?? PAUSE, SECOND), between(1.0, 1.25, context.jitter));
    this.#exchange = waiting(Math.min(context.now + pause, over));
    return this;
  }

  #failed(failure: Failure, retryAfter: Micros | undefined, requestId: string | undefined, context: Context): Phase {
    const patience = this.#began + context.plan.patience;
    const over = Math.max(this.#over(context) ?? patience, patience);
    let at = this.#retry.afterFailure(context.now, INTERVAL, retryAfter, context.jitter);
    if (this.#isLast || context.passed(over)) return this.#ended(unreachable(failure, requestId));
    if (at >= over) {
      // Jitter keeps a fleet from a common last try.
      this.#isLast = true;
      at = context.now + part(over - context.now, between(0.75, 1.0, context.jitter));
    }
    this.#exchange = waiting(at);
    return this;
  }

  #ended(state: State): Phase {
    return new Ended(state, this.#orphan);
  }

  /** Returns the end of the wait for a free seat; `undefined` if the first denial is final. */
  #over(context: Context): Micros | undefined {
    return context.plan.wait === undefined ? undefined : this.#began + context.plan.wait;
  }

  #ask(refreshed: boolean, context: Context): Exchange {
    return send(acquire(context.plan.door, context.lastSession), TIMEOUT, refreshed, this.#retry, context);
  }
}
