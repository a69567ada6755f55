/** Responses, classified by the decision that a holder takes on them. */

import { type Micros, SECOND } from "./clocks.js";
import { type Members, parseObject, parseProblem, pauseOf, type Problem, text, unnamed, whole } from "./problem.js";
import type { Failure, Response } from "./request.js";
import { Secret } from "./secret.js";

/** Seats in use and in total. */
export interface Seats {
  readonly used: number;
  readonly total: number;
}

/** A granted acquire. */
export interface Grant {
  readonly kind: "grant";
  readonly session: string;
  readonly licenseId: string | undefined;
  readonly seats: Seats | undefined;
  readonly expiresIn: Micros;
  readonly interval: Micros | undefined;
  readonly grace: Micros;
  /** False if only the program may acquire again after `expired`. */
  readonly reacquires: boolean;
  /** The code that releases the session without a token. */
  readonly releaseCode: Secret | undefined;
}

/** An answered heartbeat; `undefined` keeps the last value. */
export interface Renewal {
  readonly kind: "renewal";
  readonly expiresIn?: Micros | undefined;
  readonly interval?: Micros | undefined;
  readonly grace?: Micros | undefined;
  readonly reacquires?: boolean | undefined;
}

/** An answer that grants or renews nothing. */
export type Setback =
  /** The server, or a proxy before it, cannot answer now: try again. */
  | {
      readonly kind: "transient";
      readonly failure: Failure;
      readonly retryAfter?: Micros | undefined;
      /** The server may have carried the request out. */
      readonly isInDoubt: boolean;
      readonly requestId?: string | undefined;
    }
  /** The server cannot do this at all: the next try comes no sooner than the next heartbeat. */
  | { readonly kind: "hopeless"; readonly requestId?: string | undefined }
  /** The token is not accepted. */
  | { readonly kind: "unauthenticated"; readonly problem: Problem }
  /** The server refuses the request itself. */
  | { readonly kind: "refused"; readonly problem: Problem };

/** The longest grace that a server may give: a week. */
const GRACE_SECONDS_MAX = 604_800;
/** The longest span that a server may tell: ten years. */
const SPAN_SECONDS_MAX = 315_360_000;

const GARBAGE: Setback = { kind: "transient", failure: "garbage", isInDoubt: true };

/** Reads the answer to an acquire. */
export function readAcquire(response: Response): Grant | Setback {
  if (response.status !== 200 && response.status !== 201) return setback(response);
  const members = terms(response.body);
  const session = text(members?.["session_id"]);
  const expiresIn = span(members?.["expires_in_seconds"]);
  if (members === undefined || session === undefined || expiresIn === undefined) return GARBAGE;
  const used = whole(members["seats_used"] ?? members["devices_in_use"]);
  const total = whole(members["seats_total"] ?? members["device_limit"]);
  const releaseCode = text(members["release_code"]);
  return {
    kind: "grant",
    session,
    licenseId: text(members["license_id"]),
    seats: used === undefined || total === undefined ? undefined : { used, total },
    expiresIn,
    interval: span(members["heartbeat_interval_seconds"]),
    grace: grace(members) ?? 0,
    reacquires: reacquires(members) ?? true,
    releaseCode: releaseCode === undefined ? undefined : new Secret(releaseCode),
  };
}

/** Reads the answer to a heartbeat. */
export function readHeartbeat(response: Response): Renewal | Setback {
  if (response.status === 204) return { kind: "renewal" };
  if (response.status !== 200) return setback(response);
  const members = terms(response.body);
  if (members === undefined) return GARBAGE;
  return {
    kind: "renewal",
    expiresIn: span(members["expires_in_seconds"]),
    interval: span(members["heartbeat_interval_seconds"]),
    grace: grace(members),
    reacquires: reacquires(members),
  };
}

/** Returns the reason of a 410: the member `reason`, else by the kind of problem. */
export function goneReason(problem: Problem): string {
  if (problem.reason !== undefined) return problem.reason;
  switch (problem.code) {
    case "session-expired":
      return "expired";
    case "session-entitlement-ended":
      return "entitlement_ended";
    default:
      return "ended";
  }
}

/** Parses the terms of a seat; `undefined` if a span of them is none. */
function terms(body: string): Members | undefined {
  const members = parseObject(body);
  const spans = ["expires_in_seconds", "heartbeat_interval_seconds", "grace_seconds"];
  const isWrong = (name: string) => (members?.[name] ?? null) !== null && whole(members?.[name]) === undefined;
  return spans.some(isWrong) ? undefined : members;
}

function span(value: unknown): Micros | undefined {
  const seconds = whole(value);
  return seconds === undefined ? undefined : Math.min(seconds, SPAN_SECONDS_MAX) * SECOND;
}

function grace(members: Members): Micros | undefined {
  const seconds = whole(members["grace_seconds"]);
  return seconds === undefined ? undefined : Math.min(seconds, GRACE_SECONDS_MAX) * SECOND;
}

/** Returns the vendor's policy; one that this version does not know forbids to acquire again. */
function reacquires(members: Members): boolean | undefined {
  const policy = members["reacquire"] ?? undefined;
  return policy === undefined ? undefined : policy === "expired_only";
}

function setback(response: Response): Setback {
  const { status } = response;
  const problem = parseProblem(response);
  if (status === 401) return { kind: "unauthenticated", problem: problem ?? unnamed(response) };
  if (status === 501 || status === 505) return { kind: "hopeless", requestId: response.requestId };
  if (status === 408 || status === 429 || (status >= 500 && status <= 599)) {
    const header = span(response.retryAfter);
    const told = pauseOf(problem);
    const retryAfter = header === undefined ? told : Math.max(header, told ?? 0);
    // A rate limit rejects a request before any work.
    return { kind: "transient", failure: "unavailable", retryAfter, isInDoubt: status !== 429, requestId: response.requestId };
  }
  if (status >= 400 && status <= 499 && problem !== undefined) return { kind: "refused", problem };
  // A page of a proxy, a redirect or an unknown success tells nothing about the seat.
  return GARBAGE;
}
