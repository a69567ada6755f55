import type { Micros } from "./clocks.js";
import type { Problem } from "./problem.js";
import type { Failure } from "./request.js";

/**
 * The reason of a loss, in the server's words where the server told one. A later server may have further reasons.
 *
 * - `deadline`: the server was out of reach until the deadline and the grace had passed;
 * - `unauthorized`: the token may no longer use the license;
 * - `not_found`: the server knows no such session, and gives no new one;
 * - `expired`: the server heard no heartbeat within the TTL;
 * - `evicted`, `superseded`, `upgraded`: another client, a newer session or a higher tier took the place;
 * - `revoked`: a user or an operator ended the session;
 * - `idle`: the session's user gave no sign of work;
 * - `entitlement_ended`: the license was suspended, revoked or came to its date;
 * - `released`: the session was released, though not by this holder;
 * - `ended`: the server told no reason.
 */
export type LossReason =
  | "deadline"
  | "unauthorized"
  | "not_found"
  | "expired"
  | "evicted"
  | "superseded"
  | "upgraded"
  | "revoked"
  | "idle"
  | "entitlement_ended"
  | "released"
  | "ended"
  | (string & {});

/** The end of a seat that its program did not ask for. */
export interface Loss {
  readonly kind: "lost";
  readonly reason: LossReason;
  /** The cause, where the server named one. */
  readonly by: string | null;
  /** True if the client goes on trying to acquire. */
  readonly retry: boolean;
  /** The id of the request in the server's log, if an answer told the loss. */
  readonly requestId?: string | undefined;
}

/** The end of an acquire without a seat: the server's problem, or the last failure. */
export type Refusal =
  | { readonly kind: "refused"; readonly code: string; readonly problem: Problem }
  | {
      readonly kind: "refused";
      readonly code: "offline";
      readonly failure: Failure;
      /** The id of the request in the server's log, if the last try got an answer. */
      readonly requestId?: string | undefined;
    };

/** The state of a seat at one instant. Points are microseconds on the client's clock that counts sleep. */
export type State =
  /** No seat yet; the client asks for one. */
  | { readonly kind: "acquiring" }
  /** The server confirmed the seat lately, and keeps the seat at least until `until`. */
  | { readonly kind: "active"; readonly until: Micros }
  /** The server does not answer, or the host just woke; before `until` the seat is still held. */
  | { readonly kind: "offline"; readonly since: Micros; readonly until: Micros }
  /** The deadline passed during an outage, and the vendor lets the program go on until `until`. */
  | { readonly kind: "grace"; readonly until: Micros }
  /** The session is over by the server's word, and the client acquires again by itself. */
  | { readonly kind: "reacquiring" }
  | Loss
  | Refusal
  /** The program gave the seat up. */
  | { readonly kind: "released" };

/** The members of a state that tell it from another: a loss alone has more than its kind. */
type Told = Pick<State, "kind"> & Partial<Pick<Loss, "reason" | "by" | "retry">>;

/** Returns true if both are the same state but for a deadline that moved. */
export function isLike(one: Told, other: Told): boolean {
  return one.kind === other.kind && one.reason === other.reason && one.by === other.by && one.retry === other.retry;
}

/** Returns the state at `now`: no state is `active` after its deadline. */
export function stateAt(state: State, now: Micros): State {
  if (state.kind !== "active" || now < state.until) return state;
  return { kind: "offline", since: state.until, until: state.until };
}

/** Returns the state of a seat that its program did not give up, and that the client does not acquire again. */
export function lost(reason: LossReason, requestId?: string, by: string | null = null): Loss {
  return { kind: "lost", reason, by, retry: false, requestId };
}

/** Returns the state after an acquire that the server did not answer, or could not serve. */
export function unreachable(failure: Failure, requestId?: string): Refusal {
  return { kind: "refused", code: "offline", failure, requestId };
}
