/** Release: one retry within a budget of two seconds, and no heartbeat after the call. */

import { readAcquire } from "./answer.js";
import { type Micros, SECOND } from "./clocks.js";
import { released } from "./ended.js";
import type { Event } from "./events.js";
import { cancel, type Context, type Exchange, refreshToken, send, take } from "./exchange.js";
import type { Lease } from "./lease.js";
import type { Phase } from "./phase.js";
import { release, type Response } from "./request.js";
import { Retry } from "./retry.js";
import type { State } from "./state.js";

/** The budget of a release, retry included. */
const BUDGET = 2 * SECOND;
/** The timeout of one try: half of the budget, which leaves time for the retry. */
const TIMEOUT = SECOND;

/** Cancels the heartbeat in flight, then releases the session of `lease`. */
export function releaseSession(lease: Lease, exchange: Exchange, context: Context): Phase {
  cancel(exchange, context);
  return new Deleting(lease.session, context.now + BUDGET, context);
}

/** Releases before a session is known. */
export function releaseWithoutSession(exchange: Exchange, context: Context): Phase {
  if (exchange.kind === "in-flight") return new AwaitingAcquire(exchange.request, context.now + BUDGET);
  return released("given-back", context);
}

/** An acquire is in flight. A granted seat must be released. */
class AwaitingAcquire implements Phase {
  readonly state: State = { kind: "released" };

  constructor(
    private readonly request: number,
    readonly wakeAt: Micros,
  ) {}

  wake(): Phase {
    return this;
  }

  step(event: Event, context: Context): Phase {
    if (context.passed(this.wakeAt)) {
      context.actions.push({ kind: "cancel", request: this.request });
      return released("unconfirmed", context);
    }
    if (event.kind === "answered" && event.request === this.request) {
      const answer = readAcquire(event.response);
      return answer.kind === "grant"
        ? new Deleting(answer.session, this.wakeAt, context)
        : released("given-back", context);
    }
    // The server may have granted the acquire; the session id is unknown.
    if (event.kind === "failed" && event.request === this.request) return released("unconfirmed", context);
    return this;
  }
}

/** The session is being released. */
class Deleting implements Phase {
  readonly state: State = { kind: "released" };
  #exchange: Exchange;
  #isRetried = false;

  constructor(
    private readonly session: string,
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
      return released("unconfirmed", context);
    }
    const outcome = take(this.#exchange, event, context);
    switch (outcome?.kind) {
      case "due":
        this.#isRetried = true;
        this.#exchange = this.#delete(outcome.refreshed, context);
        return this;
      case "reply":
        return this.#answered(outcome.response, outcome.refreshed, context);
      case "failed":
        return this.#again(context);
      case undefined:
        return this;
    }
  }

  #answered({ status }: Response, refreshed: boolean, context: Context): Phase {
    if ((status >= 200 && status <= 299) || status === 404 || status === 410) return released("given-back", context);
    if (status === 401 && !refreshed && !this.#isRetried) {
      this.#exchange = refreshToken(context);
      return this;
    }
    if (status === 408 || status === 429 || (status >= 500 && status <= 599)) return this.#again(context);
    return released("unconfirmed", context);
  }

  #again(context: Context): Phase {
    if (this.#isRetried) return released("unconfirmed", context);
    this.#isRetried = true;
    this.#exchange = this.#delete(false, context);
    return this;
  }

  #delete(refreshed: boolean, context: Context): Exchange {
    return send(release(this.session), TIMEOUT, refreshed, new Retry(), context);
  }
}
