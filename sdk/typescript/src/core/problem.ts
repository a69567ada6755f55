import { type Members, objects, parseObject, text, whole } from "./json.js";
import type { Response } from "./request.js";

/** A holder of a seat. */
export interface Holder {
  readonly machineId: string;
  /** The process on the machine, where the license counts processes. */
  readonly instanceId?: string | undefined;
}

/** A device with a screen. */
export interface LiveDevice {
  readonly sessionId: string;
  readonly deviceType?: string | undefined;
  readonly deviceName?: string | undefined;
  readonly lastHeartbeatAt?: string | undefined;
}

/** A field of a request that breaks a rule. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** A refusal in the server's words (RFC 9457). */
export interface Problem {
  readonly status: number;
  /** The kind of problem: the last segment of the member `type`, or a name by status. */
  readonly code: string;
  /** One short sentence for the kind of problem. */
  readonly title: string;
  /** One sentence for this occurrence. */
  readonly detail?: string | undefined;
  /** Seconds to wait before the next try. */
  readonly retryAfterSeconds?: number | undefined;
  /** The number of seats of a full license. */
  readonly seatsTotal?: number | undefined;
  /** Some holders of a full license, the stalest first. */
  readonly holders: readonly Holder[];
  /** The devices of a subscriber whose screens are all in use, the latest heartbeat first. */
  readonly devices: readonly LiveDevice[];
  /** The number of screens of the subscriber. */
  readonly deviceLimit?: number | undefined;
  /** The fields of the request that break a rule. */
  readonly errors: readonly FieldError[];
  /** The reason of an ended session. */
  readonly reason?: string | undefined;
  /** The cause of an ended session, where the server names one. */
  readonly by?: string | undefined;
  /** The person to ask about an expired license. */
  readonly contactSupport?: string | undefined;
  /** The id of the request in the server's log. */
  readonly requestId?: string | undefined;
}

/** The longest pause that a denial may ask for: a day. */
const RETRY_AFTER_SECONDS_MAX = 86_400;

/** The kinds of problems without a `type`, by status. */
const CODES: Readonly<Record<number, string>> = {
  401: "unauthenticated",
  403: "forbidden",
  404: "not-found",
  410: "session-ended",
  422: "invalid-request",
};

/** Reads the body of an answer. A body that is no JSON object gives a problem with status and code alone. */
export function problemOf({ status, body, requestId }: Response): Problem {
  const members: Members = parseObject(body) ?? {};
  const type = text(members["type"])?.split("/").pop();
  const pause = whole(members["retryAfterSeconds"]);
  return {
    ...members,
    status,
    code: !type || type === "about:blank" ? (CODES[status] ?? "refused") : type,
    title: text(members["title"]) ?? "",
    retryAfterSeconds: pause && Math.min(pause, RETRY_AFTER_SECONDS_MAX),
    holders: objects(members["holders"], "machineId"),
    devices: objects(members["sessions"], "sessionId"),
    errors: objects(members["errors"], "field"),
    reason: text(members["reason"]),
    by: text(members["by"]),
    requestId,
  };
}
