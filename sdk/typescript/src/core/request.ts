import type { Micros } from "./clocks.js";
import type { Door } from "./door.js";

/** A request without its number and timeout. */
export interface Call {
  readonly method: "POST" | "PATCH" | "DELETE";
  /** The path on the server, from `/api`. */
  readonly path: string;
  /** The members of the body; a member that is `undefined` is not sent. */
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /** True for a call that carries its own proof, and no bearer token. */
  readonly isOpen?: true;
}

/** A request for the driver to send, with the bearer token of the moment unless `isOpen`. */
export interface Request extends Call {
  /** The number of the request; no two requests of one machine share a number. */
  readonly id: number;
  /** The driver fails the request with `timeout` after this long. */
  readonly timeout: Micros;
}

/** An HTTP response that arrived whole. */
export interface Response {
  readonly status: number;
  /** The header `Retry-After` in seconds, if the header is a number. */
  readonly retryAfter?: number | undefined;
  readonly body: string;
  /** The header `X-Request-Id`: the id of the request in the server's log. */
  readonly requestId?: string | undefined;
}

/** The way in which a request got no response. */
export type Failure =
  | "refused"
  | "certificate"
  | "reset-before-send"
  | "reset-after-send"
  | "timeout"
  | "truncated"
  | "garbage"
  | "no-token"
  | "unavailable";

/**
 * Returns the call that acquires a seat, or finds the holder's session again. `last` is the last session of the machine: a
 * device names it, and no longer names a session to replace, for the user's choice counts once.
 */
export function acquire(door: Door, last: string | undefined): Call {
  const isDevice = door.api === "devices";
  const path = isDevice ? "/api/v1/devices/sessions" : "/api/v1/licenses/acquire";
  const again = isDevice && last && { session_id: last, replace_session_id: undefined };
  return { method: "POST", path, body: { ...door.body, ...again } };
}

/**
 * Returns the call that renews a session. `idle` and `offline` are the seconds without a sign of the user and without an
 * answer of the server. A heartbeat of a license with nothing to tell has no body.
 */
export function heartbeat(door: Door, session: string, idle: number | undefined, offline: number | undefined): Call {
  const away = { idle_seconds: idle, offline_seconds: offline };
  if (door.api === "devices") {
    return { method: "POST", path: sessionPath(door, "heartbeat"), body: { session_id: session, ...away } };
  }
  const body = (idle ?? offline) === undefined ? undefined : away;
  return { method: "PATCH", path: sessionPath(door, `${session}/heartbeat`), body };
}

/** Returns the call that gives a session's seat back. */
export function release(door: Door, session: string): Call {
  return { method: "DELETE", path: sessionPath(door, session) };
}

/** Returns the call that gives a session's seat back without a token. */
export function releaseByCode(door: Door, session: string, code: string): Call {
  const body = { session_id: session, release_code: code };
  return { method: "POST", path: sessionPath(door, "release"), body, isOpen: true };
}

/** Returns the path of a session's event stream. */
export function eventsPath(door: Door, session: string): string {
  return sessionPath(door, `${session}/events`);
}

function sessionPath(door: Door, rest: string): string {
  return `/api/v1/${door.api}/sessions/${rest}`;
}
