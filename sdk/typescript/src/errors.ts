import type { FieldError, Holder, LiveDevice, Problem } from "./core/problem.js";
import type { Failure } from "./core/request.js";
import type { Loss } from "./core/state.js";

/** The base of all errors of this package. */
export class SeatkeeperError extends Error {
  override readonly name: string = "SeatkeeperError";

  constructor(
    /** The kind of error: a kind of problem of the server, `offline`, `lost`, `unconfirmed`, `released`, `closed` or `misuse`. */
    readonly code: string,
    message: string,
    /** The id of the request in the server's log, if an answer of the server led to the error. */
    readonly requestId?: string | undefined,
    cause?: unknown,
  ) {
    super(message, cause ? { cause } : {});
  }
}

/** The server refused the seat. */
export class DeniedError extends SeatkeeperError {
  override readonly name = "DeniedError";

  constructor(
    /** The server's whole answer. */
    readonly problem: Problem,
  ) {
    const { code } = problem;
    const text = problem.detail || problem.title;
    super(code, text ? `${code}: ${text}` : code, problem.requestId);
  }

  /** Some holders of a full license, the stalest first. */
  get holders(): readonly Holder[] {
    return this.problem.holders;
  }

  /** The devices of a subscriber whose screens are all in use: the session of one may be named as `replace`. */
  get devices(): readonly LiveDevice[] {
    return this.problem.devices;
  }

  /** Seconds to wait before the next try, if the server told. */
  get retryAfter(): number | undefined {
    return this.problem.retryAfterSeconds;
  }

  /** The fields of the request that break a rule. */
  get errors(): readonly FieldError[] {
    return this.problem.errors;
  }
}

/** The server gave no usable answer in time. `cause` is the error of the network, of the token source or of `fetch`. */
export class OfflineError extends SeatkeeperError {
  override readonly name = "OfflineError";

  constructor(
    /** The last failure. */
    readonly failure: Failure,
    requestId?: string,
    cause?: unknown,
  ) {
    super("offline", `the server cannot be reached: ${failure}`, requestId, cause);
  }
}

/** The seat is lost. */
export class SeatLostError extends SeatkeeperError {
  override readonly name = "SeatLostError";

  constructor(
    /** The reason, the cause, and whether the client goes on trying. */
    readonly loss: Loss,
  ) {
    const { reason, by, requestId } = loss;
    super("lost", `the seat is lost: ${reason}${by ? ` by ${by}` : ""}`, requestId);
  }
}
