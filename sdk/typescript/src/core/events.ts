import type { Failure, Request, Response } from "./request.js";
import type { State } from "./state.js";

/** An event that moves the machine. */
export type Event =
  /** Time has passed; due at `Machine.wakeAt`, harmless at any time. */
  | { readonly kind: "tick" }
  /** The host woke, or its network came back. */
  | { readonly kind: "wake" }
  /** A request was answered. */
  | { readonly kind: "answered"; readonly request: number; readonly response: Response }
  /** A request got no response. */
  | { readonly kind: "failed"; readonly request: number; readonly failure: Failure }
  /** The token source gave a fresh token. */
  | { readonly kind: "token-ready" }
  /** The token source has no fresh token. */
  | { readonly kind: "token-failed" }
  /** The event stream told the end of a session. */
  | SessionEnd
  /** The program gives the seat up. */
  | { readonly kind: "release" }
  /** The program asks for a seat again after a loss, a refusal or a release. */
  | { readonly kind: "acquire" };

/** The end of a session, as an event stream tells it. */
export interface SessionEnd {
  readonly kind: "ended";
  readonly session: string;
  readonly reason: string;
  readonly by?: string | undefined;
}

/**
 * The result of a release. `given-back`: the server holds no seat for this holder. `unconfirmed`: the server may hold a seat,
 * free one TTL after the last acquire or heartbeat at the latest.
 */
export type Finish = "given-back" | "unconfirmed";

/** An action for the driver, to be carried out in the order of the list. */
export type Action =
  /** Send the request, and report its outcome. */
  | { readonly kind: "send"; readonly request: Request }
  /** Abort the request. The machine ignores a late outcome. */
  | { readonly kind: "cancel"; readonly request: number }
  /** Replace the rejected token, then report `token-ready` or `token-failed`. */
  | { readonly kind: "refresh-token" }
  /** Tell the program its new state. A deadline that merely moved is not told. */
  | { readonly kind: "tell"; readonly state: State }
  /** The release is over; the machine sends nothing more. */
  | { readonly kind: "finish"; readonly finish: Finish };
