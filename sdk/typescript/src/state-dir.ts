/// <reference types="node" />
/** The state directory: instance ids in files that their processes lock. The format is `sdk/state-directory.md`. */

import { spawn, type SpawnOptions } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  type Stats,
  writeSync,
} from "node:fs";
import { isAbsolute, join } from "node:path";

import type { Slot } from "./slot.js";

const SLOTS_MAX = 4_096;
const CONTENT_BYTES_MAX = 4_096;
const UUID4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** `O_EXLOCK` of macOS and the BSDs: `open` takes the lock of `flock`. `O_NONBLOCK` makes a locked file an error. */
const BSD_EXLOCK = 0x20;
/** `UV_FS_O_EXLOCK` on Windows: no other handle may have the file open. */
const WINDOWS_EXLOCK = 0x1000_0000;
/** The descriptor of the file in the process of `flock`. */
const LOCKED_FD = 3;
/** Time limit of `flock` in milliseconds: a file server can hold `flock` up. */
const LOCKED_WITHIN_MS = 5_000;

/** The state directory cannot be used; the message is the warning for the program. */
export class Unusable extends Error {
  constructor(reason: string, place: string, options?: ErrorOptions) {
    super(`${reason}: ${place}`, options);
  }
}

/** The holder that names the directory of a license. */
export interface Holder {
  /** The first address of the client. */
  readonly server: string;
  readonly license: string;
  readonly machineId: string;
}

/**
 * Takes the first free slot of a license; without a usable state directory, the id is random. An `undefined` directory is
 * the default of the user, and `null` is none. Rejects with the reason of `signal` once `signal` aborts.
 */
export async function takeSlot(stateDir: string | null | undefined, holder: Holder, signal?: AbortSignal): Promise<Slot> {
  if (stateDir === null || stateDir === "") return randomSlot(undefined);
  try {
    // A slash at the end would follow a symbolic link.
    const base = (stateDir ?? defaultBase(process.platform, process.env)).replace(/(?<=.)[/\\]+$/, "");
    provide(base);
    const directory = join(base, directoryName(holder));
    provide(directory);
    return await firstFree(directory, signal);
  } catch (error) {
    if (error instanceof Unusable) return randomSlot(error.message);
    throw error;
  }
}

function randomSlot(warning: string | undefined): Slot {
  return { instanceId: randomUUID(), warning, close: () => undefined };
}

/** Returns the base directory that the environment names. Throws `Unusable`. */
export function defaultBase(platform: string, environment: Readonly<Record<string, string | undefined>>): string {
  const places =
    platform === "win32"
      ? [["LOCALAPPDATA", "Seatkeeper"] as const]
      : platform === "darwin"
        ? [["HOME", "Library/Application Support/Seatkeeper"] as const]
        : [["XDG_STATE_HOME", "seatkeeper"] as const, ["HOME", ".local/state/seatkeeper"] as const];
  for (const [variable, rest] of places) {
    const parent = environment[variable] ?? "";
    if (isAbsolute(parent)) return join(parent, rest);
  }
  throw new Unusable("no-home", `${places.map(([variable]) => variable).join(" nor ")} is an absolute path`);
}

/** Returns the name of the directory of a license: 16 hexadecimal digits. */
export function directoryName({ server, license, machineId }: Holder): string {
  const { protocol, host, pathname } = new URL(server);
  // `URL` writes scheme and host in lower case, and leaves out the default port.
  const name = `${protocol}//${host}${pathname.replace(/\/+$/, "")}`;
  return createHash("sha256").update([name, license, machineId].join("\n")).digest("hex").slice(0, 16);
}

/** Creates a directory with its parents if it is missing, and checks that nobody else can write to it. */
function provide(directory: string): void {
  const found = attempt(directory, () => {
    const isThere = lstatSync(directory, { throwIfNoEntry: false }) !== undefined;
    if (!isThere) mkdirSync(directory, { recursive: true, mode: 0o700 });
    return lstatSync(directory);
  });
  if (!found.isDirectory()) throw new Unusable("not-a-directory", directory);
  if (process.platform === "win32") return;
  if (found.uid !== process.geteuid!()) throw new Unusable("foreign-owner", directory);
  if ((found.mode & 0o022) !== 0) throw new Unusable("writable-by-others", directory);
}

async function firstFree(directory: string, signal: AbortSignal | undefined): Promise<Slot> {
  for (let number = 1; number <= SLOTS_MAX; number += 1) {
    signal?.throwIfAborted();
    const path = join(directory, `slot-${number}.lock`);
    const fd = open(path);
    if (fd === undefined) continue;
    let instanceId: string | undefined;
    try {
      instanceId = await claim(fd, path, signal);
    } finally {
      if (instanceId === undefined) closeSync(fd);
    }
    if (instanceId !== undefined) return new LockedSlot(instanceId, fd);
  }
  throw new Unusable("no-free-slot", directory);
}

/** An id with its locked file. The lock ends with the file: at `close`, or at the end of the process. */
class LockedSlot implements Slot {
  readonly warning = undefined;
  #fd: number | undefined;

  constructor(
    readonly instanceId: string,
    fd: number,
  ) {
    this.#fd = fd;
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = undefined;
    try {
      if (fd !== undefined) closeSync(fd);
    } catch {
      // The descriptor is closed all the same. A file server may tell an error of an earlier write.
    }
  }
}

/** Opens or creates the file of a slot, locked where `open` can; `undefined` if the slot is not free. Throws `Unusable`. */
function open(path: string): number | undefined {
  const { O_RDWR, O_CREAT, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const lock = isBsd() ? BSD_EXLOCK : process.platform === "win32" ? WINDOWS_EXLOCK : 0;
  try {
    return openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | lock, 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isThere = attempt(path, () => lstatSync(path, { throwIfNoEntry: false })) !== undefined;
    if (isThere && code !== "ENOTSUP" && code !== "EOPNOTSUPP") return undefined;
    throw new Unusable("unusable", path, { cause: error });
  }
}

function isBsd(): boolean {
  return ["darwin", "freebsd", "openbsd", "netbsd"].includes(process.platform);
}

/** Locks an open file, and reads or writes its id; `undefined` if the slot is not free. Throws `Unusable`. */
async function claim(fd: number, path: string, signal: AbortSignal | undefined): Promise<string | undefined> {
  if (!attempt(path, (): Stats => fstatSync(fd)).isFile()) return undefined;
  if (!isBsd() && process.platform !== "win32" && !(await flock(fd, path, signal))) return undefined;
  const content = Buffer.alloc(CONTENT_BYTES_MAX + 1);
  let bytes: number;
  try {
    bytes = readSync(fd, content, 0, content.length, 0);
  } catch {
    return undefined;
  }
  const known = readInstanceId(content.subarray(0, bytes));
  if (known !== undefined) return known;
  const instanceId = randomUUID();
  attempt(path, () => {
    ftruncateSync(fd, 0);
    const text = JSON.stringify({ version: 1, instance_id: instanceId });
    if (writeSync(fd, text, 0) !== text.length) throw new Error("the file system is full");
  });
  return instanceId;
}

/**
 * Locks an open file by the program `flock`; returns false if another process has the lock. Throws `Unusable`, and the
 * reason of `signal`.
 *
 * Node.js has no call for a lock. A lock of `flock` belongs to the open file, which parent and child share: the lock stays
 * after the end of the child, and ends when this process closes the file or dies.
 */
async function flock(fd: number, path: string, signal: AbortSignal | undefined): Promise<boolean> {
  const failed = (cause: unknown) => new Unusable("unusable", path, { cause });
  const options: SpawnOptions = { stdio: ["ignore", "ignore", "pipe", fd] };
  const child = attempt(path, () => spawn("flock", ["-x", "-n", `${LOCKED_FD}`], options));
  let end = () => {};
  const locked = new Promise<boolean>((resolve, reject) => {
    const late = setTimeout(() => reject(failed(new Error("flock: no answer in time"))), LOCKED_WITHIN_MS);
    const abort = () => reject(signal?.reason as Error);
    signal?.addEventListener("abort", abort);
    end = () => {
      clearTimeout(late);
      signal?.removeEventListener("abort", abort);
    };
    let complaint = "";
    const fail = (error: Error) => reject(failed(error));
    child.on("error", fail);
    // A process without descriptors gets no pipe, and an error.
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (complaint += text)).on("error", fail);
    child.on("close", (status) => {
      if (status === 0) resolve(true);
      // BusyBox has one status for a lock of another process and for every error, but says nothing of the lock.
      else if (status === 1 && complaint === "") resolve(false);
      else fail(new Error(`flock: ${complaint || `status ${status}`}`));
    });
  });
  try {
    return await locked;
  } finally {
    end();
    // A program that hangs in the system survives even this signal, and must keep neither the acquire nor the process.
    child.kill("SIGKILL");
    child.stderr?.destroy();
    child.unref();
  }
}

/** Returns the id of a slot's content; `undefined` if the content is not valid. */
export function readInstanceId(content: Uint8Array): string | undefined {
  if (content.length > CONTENT_BYTES_MAX) return undefined;
  let members: unknown;
  try {
    members = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content));
  } catch {
    return undefined;
  }
  if (typeof members !== "object" || members === null) return undefined;
  const { version, instance_id: instanceId } = members as { version?: unknown; instance_id?: unknown };
  return version === 1 && typeof instanceId === "string" && UUID4.test(instanceId) ? instanceId : undefined;
}

function attempt<T>(place: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new Unusable("unusable", place, { cause: error });
  }
}
