/** One request at a time: timer, request, at most one fresh token, answer. */

import { type Micros, SECOND } from "./clocks.js";
import type { Action, Event } from "./events.js";
import type { Plan } from "./plan.js";
import type { Away, Call, Failure, Response } from "./request.js";
import type { Retry } from "./retry.js";

/** The time that the token source has for a fresh token. */
export const TOKEN_TIMEOUT: Micros = 30 * SECOND;

/** The longest time that a heartbeat tells: a year. */
const AWAY_SECONDS_MAX = 31_536_000;

/** The input of one step besides its event, and the step's actions so far. */
export class Context {
  readonly actions: Action[] = [];

  constructor(
    readonly plan: Plan,
    readonly now: Micros,
    readonly jitter: number,
    public nextRequest: number,
    /** The time of the user's last activity; `undefined` for a program that tells none. */
    private readonly activeAt: Micros | undefined,
    /** The last session of the machine. */
    readonly lastSession: string | undefined,
  ) {}

  /** Returns true at `point` and later. */
  passed(point: Micros): boolean {
    return this.now >= point;
  }

  /** Returns the times for a heartbeat. `offlineSince` is the begin of the outage, if one was told. */
  away(offlineSince: Micros | undefined): Away {
    const idle = this.#secondsSince(this.activeAt);
    const offline = this.#secondsSince(offlineSince);
    return {
      ...(idle === undefined ? {} : { idle_seconds: idle }),
      ...(offline === undefined || offline === 0 ? {} : { offline_seconds: offline }),
    };
  }

  #secondsSince(point: Micros | undefined): number | undefined {
    if (point === undefined) return undefined;
    return Math.min(Math.floor(Math.max(0, this.now - point) / SECOND), AWAY_SECONDS_MAX);
  }
}

/** The pending request of a phase. */
export type Exchange =
  /** The next try is sent at `at`. */
  | { readonly kind: "waiting"; readonly at: Micros }
  /** A request is in flight. `refreshed` is set after the fresh token of this try. */
  | { readonly kind: "in-flight"; readonly request: number; readonly sent: Micros; readonly refreshed: boolean }
  /** The server rejected the token of this try, and the token source has until `over` for another. */
  | { readonly kind: "token"; readonly over: Micros };

/** A request that was answered. */
export interface Reply {
  readonly kind: "reply";
  readonly response: Response;
  readonly sent: Micros;
  readonly refreshed: boolean;
}

/** The result of an event for an exchange; `undefined` if the event belongs to no request of the exchange. */
export type Outcome =
  /** The next try is due, or the fresh token has arrived. */
  | { readonly kind: "due"; readonly refreshed: boolean }
  | Reply
  | { readonly kind: "failed"; readonly failure: Failure }
  | undefined;

/** Waits until `at` for the next try. */
export function waiting(at: Micros): Exchange {
  return { kind: "waiting", at };
}

/** Sends a request at once. */
export function send(call: Call, timeout: Micros, refreshed: boolean, retry: Retry, context: Context): Exchange {
  retry.count(context.now);
  const request = context.nextRequest;
  context.nextRequest += 1;
  context.actions.push({ kind: "send", request: { ...call, id: request, timeout } });
  return { kind: "in-flight", request, sent: context.now, refreshed };
}

/** Asks the token source for another token. */
export function refreshToken(context: Context): Exchange {
  context.actions.push({ kind: "refresh-token" });
  return { kind: "token", over: context.now + TOKEN_TIMEOUT };
}

/** Aborts a request on its way. Returns true if there was one. */
export function cancel(exchange: Exchange, context: Context): boolean {
  if (exchange.kind !== "in-flight") return false;
  context.actions.push({ kind: "cancel", request: exchange.request });
  return true;
}

/** Matches an event against the exchange. */
export function take(exchange: Exchange, event: Event, context: Context): Outcome {
  switch (exchange.kind) {
    case "waiting":
      return event.kind === "tick" && context.passed(exchange.at) ? { kind: "due", refreshed: false } : undefined;
    case "in-flight": {
      const { request, sent, refreshed } = exchange;
      if (event.kind === "answered" && event.request === request) {
        return { kind: "reply", response: event.response, sent, refreshed };
      }
      if (event.kind === "failed" && event.request === request) return { kind: "failed", failure: event.failure };
      return undefined;
    }
    case "token":
      if (event.kind === "token-ready") return { kind: "due", refreshed: true };
      if (event.kind === "token-failed" || (event.kind === "tick" && context.passed(exchange.over))) {
        return { kind: "failed", failure: "no-token" };
      }
      return undefined;
  }
}

/** Returns the time of the next try, or the end of the time for a fresh token; the driver ends a request in flight. */
export function wakeAt(exchange: Exchange): Micros | undefined {
  switch (exchange.kind) {
    case "waiting":
      return exchange.at;
    case "token":
      return exchange.over;
    case "in-flight":
      return undefined;
  }
}
