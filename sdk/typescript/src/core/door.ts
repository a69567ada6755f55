/** The API through which a machine holds its seat. */

/** The holder of a seat, and the API of that kind of seat. */
export interface Door {
  readonly api: "licenses" | "devices";
  /** The machine or the device: license tokens are issued for one machine. */
  readonly holder: string;
  /** The body of the first acquire. */
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
  readonly licenseKey: string;
  readonly machineId: string;
  /** The process on the machine, for licenses that count processes. */
  readonly instanceId?: string | undefined;
  /** The program's name for itself, for the audit log. */
  readonly userAgent?: string | undefined;
  /** An object of the program's own, for the audit log. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  readonly client?: ClientProgram | undefined;
}

/** Returns the door of a license's seat. */
export function licenseDoor(holder: LicenseHolder): Door {
  const { licenseKey, machineId, instanceId, userAgent, metadata, client } = holder;
  const body = given({
    license_key: licenseKey,
    machine_id: machineId,
    instance_id: instanceId,
    user_agent: userAgent,
    metadata,
    client: client && given({ ...client }),
  });
  return { api: "licenses", holder: machineId, body, full: "license-full" };
}

/** The type of a device. */
export type DeviceType = "mobile" | "tv" | "browser" | "tablet";

/** A device of a subscriber. */
export interface DeviceHolder {
  readonly deviceId: string;
  readonly deviceType: DeviceType;
  /** The owner's name for the device. */
  readonly deviceName?: string | undefined;
  /** The device's last session, if the program remembers one. */
  readonly session?: string | undefined;
  /** The session that may end if every screen is in use. */
  readonly replaces?: string | undefined;
}

/** Returns the door of a device's screen. */
export function deviceDoor({ deviceId, deviceType, deviceName, session, replaces }: DeviceHolder): Door {
  const body = given({
    device_id: deviceId,
    device_type: deviceType,
    device_name: deviceName,
    session_id: session,
    replace_session_id: replaces,
  });
  return { api: "devices", holder: deviceId, body, full: "devices-full" };
}

/** Returns the members with a value. */
function given(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
