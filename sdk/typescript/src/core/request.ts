import type { Micros } from "./clocks.js";
import type { Plan } from "./plan.js";

/** A request without its number and timeout. */
export interface Call {
  readonly method: "POST" | "PATCH" | "DELETE";
  /** The path on the server, from `/api`. */
  readonly path: string;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** A request for the driver to send with the bearer token of the moment. */
export interface Request extends Call {
  /** The number of the request; no two requests of one machine share a number. */
  readonly id: number;
  /** The driver fails the request with `timeout` after this long. */
  readonly timeout: Micros;
}

/** An HTTP response that arrived whole. */
export interface Response {
  readonly status: number;
  /** The header `Retry-After` in seconds, if the header is a number. */
  readonly retryAfter?: number | undefined;
  readonly body: string;
}

/** The way in which a request got no response. */
export type Failure =
  | "refused"
  | "certificate"
  | "reset-before-send"
  | "reset-after-send"
  | "timeout"
  | "truncated"
  | "garbage"
  | "no-token"
  | "unavailable";

/** Returns the call that acquires a seat, or finds the holder's session again. */
export function acquire(plan: Plan): Call {
  const body: Record<string, unknown> = { license_key: plan.licenseKey, machine_id: plan.machineId };
  if (plan.instanceId !== undefined) body["instance_id"] = plan.instanceId;
  if (plan.userAgent !== undefined) body["user_agent"] = plan.userAgent;
  if (plan.metadata !== undefined) body["metadata"] = plan.metadata;
  return { method: "POST", path: "/api/v1/licenses/acquire", body };
}

/** Returns the call that renews a session. */
export function heartbeat(session: string): Call {
  return { method: "PATCH", path: `/api/v1/licenses/sessions/${session}/heartbeat` };
}

/** Returns the call that gives a session's seat back. */
export function release(session: string): Call {
  return { method: "DELETE", path: `/api/v1/licenses/sessions/${session}` };
}
