import type { Failure, Request, Response } from "./request.js";

/** The kinds of events: numbers, which a page loads in a byte each. */
export const enum EventKind {
  Tick,
  Wake,
  Over,
  TokenReady,
  TokenFailed,
  Release,
  Abandon,
  Acquire,
  Ended,
}

/** An event that moves the machine. */
export type Event =
  /** Time has passed; due at `Machine.wakeAt`, harmless at any time. */
  | { readonly kind: EventKind.Tick }
  /** The host woke, or its network came back. */
  | { readonly kind: EventKind.Wake }
  /** A request was answered, or got no response. */
  | { readonly kind: EventKind.Over; readonly request: number; readonly outcome: Response | Failure }
  /** The token source gave a fresh token. */
  | { readonly kind: EventKind.TokenReady }
  /** The token source has no fresh token. */
  | { readonly kind: EventKind.TokenFailed }
  /** The event stream told the end of a session, or is over. */
  | SessionEnd
  /** The program gives the seat up, and waits for the result. */
  | { readonly kind: EventKind.Release }
  /**
   * The program gives the seat up, and waits for nothing. An acquire in flight may take its whole timeout, and a session that is
   * granted late is released. A later `Release` shortens the wait.
   */
  | { readonly kind: EventKind.Abandon }
  /** The program asks for a seat again after a loss, a refusal or a release. */
  | { readonly kind: EventKind.Acquire };

/**
 * The end of a session, as an event stream tells it. Without a reason the stream is over: its answer was 204 or 404. One type
 * for both is smaller in a page.
 */
export interface SessionEnd {
  readonly kind: EventKind.Ended;
  readonly session: string;
  readonly reason: string | undefined;
  readonly by?: string | undefined;
}

/** The driver of a machine. The machine calls these functions within a step, so they must not step it. */
export interface Host {
  /** Sends the request, and reports its outcome as an event. */
  send(request: Request): void;
  /** Aborts the request. The machine ignores a late outcome. */
  cancel(request: number): void;
  /** Replaces the rejected token, then reports `token-ready` or `token-failed`. */
  refreshToken(): void;
}
