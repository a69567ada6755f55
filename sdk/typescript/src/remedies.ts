/**
 * What to do about a refusal by its code, about a server without an answer by the failure, and about a loss by its reason.
 * Pages load without these texts: [errors](../README.md#errors) has them for their authors.
 */
export const REMEDIES: Readonly<Record<string, string>> = {
  "devices-full": "let the user choose one of `devices`, and admit with `replace`",
  "license-expired": "renew the license; `problem.contactSupport` names the person to ask",
  "license-full": "pass `wait` to wait for a seat, or ask one of `holders` to end its program",
  unauthenticated: "check the issuer, the audience and the end of the token",

  refused: "check the address, and that the server runs",
  "reset-before-send": "check the network and the proxies on the way",
  "reset-after-send": "check the network and the proxies on the way",
  timeout: "check the network, or raise `patience`",
  truncated: "check the network and the proxies on the way",
  garbage: "check the address: another server or a proxy answers",
  "no-token": "check the function or the file that the token comes from",
  unavailable: "try again later, or raise `patience`",

  deadline: "the client acquires again once the server answers; check the network",
  unauthorized: "the token may no longer use the license: ask its issuer",
  evicted: "ask the user before the program acquires again",
  revoked: "ask the operator before the program acquires again",
  entitlement_ended: "renew the license",
  idle: "acquire again when the user is back; `activity` tells the server of work",
};
