import type { Failure } from "./core/request.js";
import { DeniedError, OfflineError, type SeatkeeperError, SeatLostError } from "./errors.js";
import { isUnresolved } from "./node-transport.js";
import { TransportError } from "./server.js";

/** The failures of a server without a usable answer, in plain words. */
const FAILURES: Readonly<Record<Failure | "unresolved", string>> = {
  refused: "no connection",
  unresolved: "the host name has no address",
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

/**
 * What to do about a refusal by its code, about a server without an answer by the failure, and about a loss by its reason.
 * Pages load without these texts: [errors](../README.md#errors) has them for their authors.
 */
const REMEDIES: Readonly<Record<string, string>> = {
  "devices-full": "let the user choose one of `devices`, and admit with `replace`",
  "license-expired": "renew the license; `problem.contactSupport` names the person to ask",
  "license-full": "pass `wait` to wait for a seat, or ask one of `holders` to end its program",
  "not-found": "correct the path of the address, or update the older of client and server",
  unauthenticated: "check the issuer, the audience and the end of the token",

  refused: "check the address, and that the server runs",
  unresolved: "check the host name in the address, and the name servers of this machine",
  "reset-before-send": "check the network and the proxies on the way",
  "reset-after-send": "check the network and the proxies on the way",
  timeout: "check the network, or raise `patience`",
  truncated: "check the network and the proxies on the way",
  garbage: "check the address: another server or a proxy answers",
  "no-token": "check the function or the file that the token comes from",
  unavailable: "try again later, or raise `patience`",

  released: "acquire another seat",
  unconfirmed: "wait until the state of the seat is active again",

  deadline: "the client acquires again once the server answers; check the network",
  unauthorized: "the token may no longer use the license: ask its issuer",
  evicted: "ask the user before the program acquires again",
  revoked: "ask the operator before the program acquires again",
  entitlement_ended: "renew the license",
  idle: "acquire again when the user is back; `activity` tells the server of work",
};

/** Makes the error of the network or of the program the cause, in place of the package's own error around it. */
function revealCause(error: OfflineError): void {
  while (error.cause instanceof TransportError) error.cause = error.cause.cause;
  if (error.cause === undefined) delete error.cause;
}

/** Says in the text of the error what happened in detail, and what its reader can do. */
export function explain(error: SeatkeeperError): SeatkeeperError {
  let told = error.message;
  let subject = error.code;
  if (error instanceof DeniedError) {
    const wrong = error.errors.map(({ field, message }) => `${field} ${message}`).join(", ");
    if (wrong !== "") told += ` (${wrong})`;
  } else if (error instanceof OfflineError) {
    revealCause(error);
    const failure = isUnresolved(error.cause) ? "unresolved" : error.failure;
    told = told.replace(error.failure, FAILURES[failure]);
    subject = failure;
  } else if (error instanceof SeatLostError) {
    subject = error.loss.reason;
  }
  const remedy = REMEDIES[subject];
  const text = remedy === undefined ? told : `${told.replace(/\.$/, "")}. Remedy: ${remedy}`;
  // The stack repeats the text.
  if (typeof error.stack === "string") error.stack = error.stack.replace(error.message, () => text);
  error.message = text;
  return error;
}
