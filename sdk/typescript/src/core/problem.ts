import { type Micros, SECOND } from "./clocks.js";
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

/** The members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>;

/** The longest pause that a denial may ask for: a day. */
const RETRY_AFTER_SECONDS_MAX = 86_400;

/** Returns the problem of an answer that has a status alone. */
export function unnamed({ status, requestId }: Response): Problem {
  return { status, code: codeOf("", status), title: "", holders: [], devices: [], errors: [], requestId };
}

/** Parses the body of an answer; `undefined` if the body has neither `type` nor `title`, for then some proxy answered. */
export function parseProblem({ status, body, requestId }: Response): Problem | undefined {
  const members = parseObject(body);
  if (members === undefined) return undefined;
  const type = text(members["type"]) ?? "";
  const title = text(members["title"]) ?? "";
  if (type === "" && title === "") return undefined;
  return {
    status,
    code: codeOf(type, status),
    title,
    detail: text(members["detail"]),
    retryAfterSeconds: whole(members["retry_after_seconds"]),
    seatsTotal: whole(members["seats_total"]),
    holders: objects(members["holders"]).flatMap(holder),
    devices: objects(members["sessions"]).flatMap(device),
    deviceLimit: whole(members["device_limit"]),
    errors: objects(members["errors"]).map((error) => ({
      field: text(error["field"]) ?? "",
      message: text(error["message"]) ?? "",
    })),
    reason: text(members["reason"]),
    by: text(members["by"]),
    contactSupport: text(members["contact_support"]),
    requestId,
  };
}

/** Returns the pause before the next try, a day at most. */
export function pauseOf(problem: Problem | undefined): Micros | undefined {
  const seconds = problem?.retryAfterSeconds;
  return seconds === undefined ? undefined : Math.min(seconds, RETRY_AFTER_SECONDS_MAX) * SECOND;
}

/** Parses a JSON object; `undefined` for everything else. */
export function parseObject(body: string): Members | undefined {
  try {
    return object(JSON.parse(body));
  } catch {
    return undefined;
  }
}

/** Returns a value that is a text. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Returns a value that is a whole number from zero up. */
export function whole(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
}

function object(value: unknown): Members | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : undefined;
}

function objects(value: unknown): Members[] {
  return Array.isArray(value) ? value.map(object).filter((member) => member !== undefined) : [];
}

function holder(members: Members): Holder[] {
  const machineId = text(members["machine_id"]);
  return machineId === undefined ? [] : [{ machineId, instanceId: text(members["instance_id"]) }];
}

function device(members: Members): LiveDevice[] {
  const sessionId = text(members["session_id"]);
  if (sessionId === undefined) return [];
  const [deviceType, deviceName] = [text(members["device_type"]), text(members["device_name"])];
  return [{ sessionId, deviceType, deviceName, lastHeartbeatAt: text(members["last_heartbeat_at"]) }];
}

function codeOf(type: string, status: number): string {
  const last = type.slice(type.lastIndexOf("/") + 1);
  if (last !== "" && last !== "about:blank") return last;
  switch (status) {
    case 401:
      return "unauthenticated";
    case 403:
      return "forbidden";
    case 404:
      return "not-found";
    case 410:
      return "session-ended";
    case 422:
      return "invalid-request";
    default:
      return "refused";
  }
}
