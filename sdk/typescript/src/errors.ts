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
  ) {
    super(message);
  }
}

/** Returns the text of an error with the next step of its reader. */
function withRemedy(told: string, remedy: string | undefined): string {
  return remedy === undefined ? told : `${told.replace(/\.$/, "")}. Remedy: ${remedy}`;
}

/** The server refused the seat. */
export class DeniedError extends SeatkeeperError {
  override readonly name = "DeniedError";

  constructor(
    /** The server's whole answer. */
    readonly problem: Problem,
    remedy?: string,
  ) {
    const { code, detail, title, errors, requestId } = problem;
    const wrong = errors.map(({ field, message }) => `${field} ${message}`).join(", ");
    const told = [code, detail || title].filter(Boolean).join(": ") + (wrong && ` (${wrong})`);
    super(code, withRemedy(told, remedy), requestId);
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

const FAILURES: Record<Failure, string> = {
  refused: "no connection",
  certificate:
    "the server's certificate was not accepted: trust its authority (Node.js: NODE_EXTRA_CA_CERTS), or correct the certificate's name and dates",
  "reset-before-send": "the connection broke before the request was sent",
  "reset-after-send": "the connection failed before the answer",
  timeout: "no answer in time",
  truncated: "the answer broke off",
  garbage: "the answer is not one of a Seatkeeper server",
  "no-token": "the token source has no token",
  unavailable: "the server cannot answer now",
};

/** The server gave no usable answer in time. */
export class OfflineError extends SeatkeeperError {
  override readonly name = "OfflineError";

  constructor(
    /** The last failure. */
    readonly failure: Failure,
    requestId?: string,
    remedy?: string,
  ) {
    super("offline", withRemedy(`the server cannot be reached: ${FAILURES[failure]}`, remedy), requestId);
  }
}

/** The seat is lost. */
export class SeatLostError extends SeatkeeperError {
  override readonly name = "SeatLostError";

  constructor(
    /** The reason, the cause, and whether the client goes on trying. */
    readonly loss: Loss,
    remedy?: string,
  ) {
    const told = `the seat is lost: ${loss.reason}${loss.by === null ? "" : ` by ${loss.by}`}`;
    super("lost", withRemedy(told, remedy), loss.requestId);
  }
}
