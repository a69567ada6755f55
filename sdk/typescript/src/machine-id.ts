/// <reference types="node" />
/** A stable id of this machine for programs on Node.js. */

import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

import { SeatkeeperError } from "./errors.js";

const MAC_COMMAND = ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"];
const WINDOWS_COMMAND = ["reg", "query", "HKLM\\SOFTWARE\\Microsoft\\Cryptography", "/v", "MachineGuid", "/reg:64"];
/** The timeout of a command in milliseconds. */
const COMMAND_TIMEOUT = 10_000;
/** Files of Linux: the second serves hosts without systemd. */
const LINUX_FILES = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
/** The content of `/etc/machine-id` in an image that has not booted yet. */
const UNINITIALIZED = "uninitialized";
/** Files that exist in containers alone. */
const CONTAINER_FILES = ["/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io/serviceaccount/namespace"];
/** Parts of the control group of a container's first process, or of the source of its root directory. */
const CONTAINER_GROUPS = ["docker", "kubepods", "containerd", "libpod", "lxc"];

const CONTAINER =
  "a container has no stable machine id: pass an id of your own as `machineId`, such as the name of the host or of the pod's stateful set";
const MISSING =
  "the operating system names no machine id (Linux: /etc/machine-id is missing, empty or uninitialized): pass an id of your own as `machineId`";

/** An operating system with its files and commands; `undefined` stands for a missing file and a failed command. */
export interface Machine {
  readonly platform: string;
  readonly read: (path: string) => string | undefined;
  readonly run: (command: readonly string[]) => string | undefined;
}

/**
 * Returns the id of this machine for the program `appId`, such as `com.example.cad`: 32 hexadecimal digits.
 *
 * The id is the same after every start, and different for each program, so that two vendors cannot match their users. It is
 * HMAC-SHA256 of `appId`, keyed with the id of the operating system, which never leaves the machine.
 *
 * Throws a `SeatkeeperError` with the code `container` in a container, and `no-machine-id` on a machine without an id.
 */
export function machineId(appId: string): string {
  return machineIdOn({ platform: process.platform, read, run }, appId);
}

/** Returns the id of a machine with these files and commands. */
export function machineIdOn(machine: Machine, appId: string): string {
  if (appId === "") {
    const want = "want a name of the program that stays the same, such as com.example.cad";
    throw new SeatkeeperError("misuse", `appId is empty: ${want}`);
  }
  if (machine.platform === "linux" && isContainer(machine)) throw new SeatkeeperError("container", CONTAINER);
  const osId = (find(machine) ?? "").trim().toLowerCase();
  if (osId === "" || osId === UNINITIALIZED) throw new SeatkeeperError("no-machine-id", MISSING);
  return derive(osId, appId);
}

/** Returns the id of a program on the machine with this id of its operating system. */
export function derive(osId: string, appId: string): string {
  return createHmac("sha256", osId).update(appId).digest("hex").slice(0, 32);
}

function find({ platform, read, run }: Machine): string | undefined {
  switch (platform) {
    case "linux":
      return LINUX_FILES.map(read).find((file) => file !== undefined);
    case "darwin":
      return valueAfter(run(MAC_COMMAND), '"IOPlatformUUID" =');
    case "win32":
      return valueAfter(run(WINDOWS_COMMAND), "REG_SZ");
    default:
      return undefined;
  }
}

function isContainer({ read }: Machine): boolean {
  const group = read("/proc/1/cgroup") ?? "";
  // With cgroup 2, a container does not see its own group.
  const mounts = read("/proc/self/mountinfo")?.split("\n") ?? [];
  const root = mounts.find((mount) => mount.split(" ")[4] === "/") ?? "";
  const hasFile = CONTAINER_FILES.some((file) => read(file) !== undefined);
  return hasFile || CONTAINER_GROUPS.some((name) => group.includes(name) || root.includes(name));
}

/** Returns the rest of the first line with `name`, without quotes and spaces. */
function valueAfter(output: string | undefined, name: string): string | undefined {
  const line = output?.split("\n").find((text) => text.includes(name));
  return line?.slice(line.indexOf(name) + name.length).replace(/^[ "\t]+|[ "\t\r]+$/g, "");
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function run([program, ...rest]: readonly string[]): string | undefined {
  try {
    return execFileSync(program!, rest, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: COMMAND_TIMEOUT });
  } catch {
    return undefined;
  }
}
