/** Sessions that may live at the server although no phase holds their lease. */

import type { Grant, Setback } from "./answer.js";
import type { Door } from "./door.js";
import type { Failure } from "./request.js";
import type { Secret } from "./secret.js";

/**
 * The session of this holder that a release has to end; `undefined` if no session of this holder lives. A holder has at
 * most one live session.
 */
export type Orphan =
  /** The session of the last lease may live. */
  | { readonly kind: "known"; readonly session: string; readonly releaseCode: Secret | undefined }
  /**
   * The reply to an acquire is lost, so a session with an unknown id may live. An acquire is idempotent by holder: another
   * acquire tells the id, also that of an earlier session.
   */
  | { readonly kind: "unknown" }
  | undefined;

/** The session of a lease or of a grant. */
export function known({ session, releaseCode }: Pick<Grant, "session" | "releaseCode">): Orphan {
  return { kind: "known", session, releaseCode };
}

/** The session of an acquire whose reply is lost. */
export const UNKNOWN: Orphan = { kind: "unknown" };

/** Returns the orphan after an acquire without a response. */
export function afterFailure(orphan: Orphan, failure: Failure): Orphan {
  switch (failure) {
    case "refused":
    case "certificate":
    case "reset-before-send":
    case "no-token":
      // The server has seen no request.
      return orphan;
    case "reset-after-send":
    case "timeout":
    case "truncated":
    case "garbage":
    case "unavailable":
      return UNKNOWN;
  }
}

/**
 * Returns the orphan after an acquire without a grant. A server with every seat in use would have resumed a session of this
 * holder.
 */
export function afterSetback(orphan: Orphan, setback: Setback, door: Door): Orphan {
  if (setback.kind === "transient" && setback.isInDoubt) return UNKNOWN;
  if (setback.kind === "refused" && setback.problem.code === door.full) return undefined;
  return orphan;
}
