import type { Failure, Request, Response } from "./request.js";

/** An event that moves the machine. */
export type Event =
  /** Time has passed; due at `Machine.wakeAt`, harmless at any time. */
  | { readonly kind: "tick" }
  /** The host woke, or its network came back. */
  | { readonly kind: "wake" }
  /** A request was answered, or got no response. */
  | { readonly kind: "over"; readonly request: number; readonly outcome: Response | Failure }
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

/** The driver of a machine. The machine calls these functions within a step, so they must not step it. */
export interface Host {
  /** Sends the request, and reports its outcome as an event. */
  send(request: Request): void;
  /** Aborts the request. The machine ignores a late outcome. */
  cancel(request: number): void;
  /** Replaces the rejected token, then reports `token-ready` or `token-failed`. */
  refreshToken(): void;
}
