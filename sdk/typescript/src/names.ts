/** The names that the package exports on every platform. */

export type { AdmitOptions, Application, Device, License, WaitOptions } from "./client.js";
export type { Seats } from "./core/answer.js";
export type { DeviceIdentity, DeviceType } from "./core/door.js";
export type { FieldError, Holder, LiveDevice, Problem } from "./core/problem.js";
export type { Failure } from "./core/request.js";
export type { Loss, LossReason, Refusal, State } from "./core/state.js";
export { DeniedError, OfflineError, SeatkeeperError, SeatLostError } from "./errors.js";
export { LicenseKey } from "./license-key.js";
export type { Seat } from "./seat.js";
export type { TokenSource } from "./tokens.js";
