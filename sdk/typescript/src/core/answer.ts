/** Outcomes of requests, classified by the decision that a holder takes on them. */

import { type Micros, SECOND } from "./clocks.js";
import { type Members, parseObject, text, whole } from "./json.js";
import { type Problem, problemOf } from "./problem.js";
import type { Failure, Response } from "./request.js";

/** Seats in use and in total. */
export interface Seats {
  readonly used: number;
  readonly total: number;
}

/** The terms of a seat; in a renewal `undefined` keeps the last value. */
export interface Terms {
  readonly session?: string | undefined;
  readonly licenseId?: string | undefined;
  readonly seats?: Seats | undefined;
  readonly expiresIn?: Micros | undefined;
  readonly interval?: Micros | undefined;
  readonly grace?: Micros | undefined;
  /** False if only the program may acquire again after `expired`. */
  readonly reacquires?: boolean | undefined;
  /** The release code, which releases the session without a token. */
  readonly releasingCode?: string | undefined;
}

/** The kinds of answers: numbers, which a page loads in a byte each. */
export const enum Kind {
  Granted,
  Transient,
  Hopeless,
  Unauthenticated,
  Refused,
}

/** A request that is over. */
export type Answer =
  /** The server granted, renewed or released a seat. */
  | { readonly kind: Kind.Granted; readonly terms: Terms; readonly sent: Micros }
  | Setback;

/** An outcome that grants or renews nothing. */
export type Setback =
  /** The server, or a proxy before it, cannot answer now: try again. */
  | {
      readonly kind: Kind.Transient;
      readonly failure: Failure;
      /** The server may have carried the request out. */
      readonly isInDoubt: boolean;
      readonly retryAfter: Micros;
      /** The answer; `undefined` if there was none, or none of the server. */
      readonly problem?: Problem;
    }
  /** The server cannot do this at all: the next try comes no sooner than the next heartbeat. */
  | { readonly kind: Kind.Hopeless; readonly problem: Problem }
  /** The token is not accepted. */
  | { readonly kind: Kind.Unauthenticated; readonly problem: Problem }
  /** The server refuses the request itself. */
  | { readonly kind: Kind.Refused; readonly problem: Problem };

/** The longest grace that a server may give: a week. */
const GRACE_SECONDS_MAX = 604_800;
/** The longest span that a server may tell: ten years. */
const SPAN_SECONDS_MAX = 315_360_000;
/** The longest `Retry-After` that counts: an hour. A lost seat waits for it in full, and a proxy may ask for years. */
const RETRY_AFTER_SECONDS_MAX = 3_600;

/** Failures of requests that the server has not seen. */
const UNSEEN: readonly Failure[] = ["refused", "certificate", "reset-before-send", "no-token"];

/** Returns the outcome of a request without a response. */
export function failed(failure: Failure): Setback {
  return { kind: Kind.Transient, failure, isInDoubt: !UNSEEN.includes(failure), retryAfter: 0 };
}

/** A page of a proxy, a redirect or an unknown success, which tells nothing about the seat. */
export const FOREIGN = failed("garbage");

/** Reads the answer to a request of `method` that was sent at `sent`. */
export function readAnswer(response: Response, method: string, sent: Micros): Answer {
  const { status, body } = response;
  const isSilent = status === 204;
  // A page of a proxy is no word of the server on a session.
  if (!isSilent && (method === "DELETE" || (status !== 200 && status !== 201))) return setback(response);
  const terms = isSilent ? {} : readTerms(parseObject(body));
  return terms ? { kind: Kind.Granted, terms, sent } : FOREIGN;
}

/** Reads the terms of a seat; `undefined` if a span of them is none. */
function readTerms(members: Members | undefined): Terms | undefined {
  if (!members) return undefined;
  let isWrong = false;
  const span = (name: string, secondsMax = SPAN_SECONDS_MAX): Micros | undefined => {
    const seconds = whole(members[name]);
    isWrong ||= (members[name] ?? seconds) !== seconds;
    return seconds && Math.min(seconds, secondsMax) * SECOND;
  };
  const used = whole(members["seatsUsed"] ?? members["devicesInUse"]) ?? 0;
  const total = whole(members["seatsTotal"] ?? members["deviceLimit"]);
  const policy = members["reacquire"];
  const terms: Terms = {
    session: text(members["sessionId"]),
    licenseId: text(members["licenseId"]),
    seats: total === undefined ? undefined : { used, total },
    expiresIn: span("expiresInSeconds"),
    interval: span("heartbeatIntervalSeconds"),
    grace: span("graceSeconds", GRACE_SECONDS_MAX),
    // A policy that this version does not know forbids to acquire again.
    reacquires: policy == null ? undefined : policy === "expired_only",
    releasingCode: text(members["releaseCode"]),
  };
  return isWrong ? undefined : terms;
}

function setback(response: Response): Setback {
  const { status } = response;
  const problem = problemOf(response);
  if (status === 401) return { kind: Kind.Unauthenticated, problem };
  if (status === 501 || status === 505) return { kind: Kind.Hopeless, problem };
  if (status === 408 || status === 429 || status >= 500) {
    const seconds = Math.min(Math.max(response.retryAfter ?? 0, problem.retryAfterSeconds ?? 0), RETRY_AFTER_SECONDS_MAX);
    // A rate limit rejects a request before any work.
    return { kind: Kind.Transient, failure: "unavailable", isInDoubt: status !== 429, retryAfter: seconds * SECOND, problem };
  }
  const isProblem = status >= 400 && ("type" in problem || problem.title);
  return isProblem ? { kind: Kind.Refused, problem } : FOREIGN;
}

/** The reasons of a 410 without the member `reason`, by the kind of problem. */
const GONE: Readonly<Record<string, string>> = {
  "session-expired": "expired",
  "session-entitlement-ended": "entitlement_ended",
};

/** Returns the reason of a 410. */
export function goneReason(problem: Problem): string {
  return problem.reason ?? GONE[problem.code] ?? "ended";
}
