/** The API through which a machine holds its seat. */

import type { Micros } from "./clocks.js";

/** The request of a holder: a seat, and how long to try. */
export interface Plan {
  readonly door: Door;
  /** How long to ask again while every seat is in use: zero takes the first denial as final. */
  readonly wait: Micros;
  /** How long to try a server that does not answer; a longer `wait` prevails. */
  readonly patience: Micros;
}

/** The default of `Plan.patience` in seconds. */
export const PATIENCE_SECONDS = 10;

/** The holder of a seat, and the API of that kind of seat. */
export interface Door {
  readonly api: "licenses" | "devices";
  /** The machine or the device: license tokens are issued for one machine. */
  readonly holder: string;
  /** The body of the first acquire; a member that is `undefined` is not sent. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The kind of problem of a denial for want of a seat. */
  readonly full: string;
}

/** The program that holds a seat, and its client library, for the audit log. */
export interface ClientProgram {
  readonly name?: string | undefined;
  readonly version?: string | undefined;
  readonly sdk?: string | undefined;
}

/** The holder of a seat of a license. */
export interface LicenseHolder {
  /** A name of this machine that stays the same. */
  readonly machineId: string;
  /** A name of this process, for licenses that count processes. */
  readonly instanceId?: string | undefined;
  /** The program's name for itself, for the audit log; prevails over the client's `application`. */
  readonly userAgent?: string | undefined;
  /** An object of the program's own, for the audit log: at most 4 KiB. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** Returns the door of a seat of the license with this key. */
export function licenseDoor(key: string, holder: LicenseHolder, client?: ClientProgram): Door {
  const body = {
    license_key: key,
    machine_id: holder.machineId,
    instance_id: holder.instanceId,
    user_agent: holder.userAgent,
    metadata: holder.metadata,
    client,
  };
  return { api: "licenses", holder: holder.machineId, body, full: "license-full" };
}

/** The type of a device. */
export type DeviceType = "mobile" | "tv" | "browser" | "tablet";

/** A device of the subscriber whom the client's token names. */
export interface DeviceIdentity {
  /** A name of this device that stays the same. */
  readonly deviceId: string;
  readonly deviceType: DeviceType;
  /** The owner's name for the device, shown to the owner's other devices. */
  readonly deviceName?: string | undefined;
}

/** Returns the door of a device's screen, with the device's last session and the session that may end for the new one. */
export function deviceDoor(device: DeviceIdentity, session: string | undefined, replaces: string | undefined): Door {
  const body = {
    device_id: device.deviceId,
    device_type: device.deviceType,
    device_name: device.deviceName,
    session_id: session,
    replace_session_id: replaces,
  };
  return { api: "devices", holder: device.deviceId, body, full: "devices-full" };
}
