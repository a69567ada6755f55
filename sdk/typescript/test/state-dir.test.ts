/** The state directory: known answers of every language, killed processes, and directories that cannot be used. */

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { getEventListeners, once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, DeniedError, OfflineError } from "../src/index.node.js";
import type { Slot } from "../src/slot.js";
import { defaultBase, directoryName, readInstanceId, takeSlot } from "../src/state-dir.js";
import { GRANT, type Scripted, scripted } from "./scripted.js";
import { BINARY, Server } from "./server.js";

const HOLDER = { server: "http://127.0.0.1:8080", license: "CAD-2030", machineId: "workstation-7" };
const KNOWN_ID = "0b9d3a52-6c0f-4f6e-9b0a-3f2a1d7c8e45";
/** A user of every Unix who is not the one that runs the tests. */
const NOBODY = 65_534;
const skip = process.platform === "win32" && "needs the permissions of Unix";
/** Takes a slot of the directory in the last argument, tells the id, and holds the slot until its end. */
const HOLD_SLOT = `
  import { takeSlot } from ${JSON.stringify(new URL("../src/state-dir.js", import.meta.url).href)};
  console.log((await takeSlot(process.argv.at(-1), ${JSON.stringify(HOLDER)})).instanceId);
  setInterval(() => undefined, 1_000);
`;
/** Tells the warning of a slot, taken with as many free descriptors as the argument before the directory says. */
const FULL = `
  import { closeSync, openSync } from "node:fs";
  import { takeSlot } from ${JSON.stringify(new URL("../src/state-dir.js", import.meta.url).href)};
  const taken = [];
  try {
    for (;;) taken.push(openSync("/dev/null"));
  } catch {
    for (let free = Number(process.argv.at(-2)); free > 0; free -= 1) closeSync(taken.pop());
  }
  const { warning } = await takeSlot(process.argv.at(-1), ${JSON.stringify(HOLDER)});
  taken.forEach((fd) => closeSync(fd));
  console.log(warning);
`;
/** Holds a seat of the real server until its end. */
const HOLD_SEAT = `
  import { Client } from ${JSON.stringify(new URL("../src/index.node.js", import.meta.url).href)};
  const client = new Client(process.env.URL, { token: process.env.TOKEN, stateDir: process.argv.at(-1) });
  console.log((await client.license("PROCESSES").acquire({ machineId: "m", perProcess: true })).sessionId);
  setInterval(() => undefined, 1_000);
`;

/** A base directory that no process has used yet. */
class Place {
  readonly folder = fs.mkdtempSync(join(tmpdir(), "seatkeeper-state-"));
  readonly base = join(this.folder, "a", "state");
  readonly directory = join(this.base, directoryName(HOLDER));

  constructor(private readonly t: TestContext) {
    t.after(() => {
      process.seteuid?.(process.getuid!());
      fs.rmSync(this.folder, { recursive: true, force: true });
    });
  }

  file(number: number): string {
    return join(this.directory, `slot-${number}.lock`);
  }

  /** Takes a slot until the end of the test. */
  async take(): Promise<Slot> {
    const slot = await takeSlot(this.base, HOLDER);
    this.t.after(() => slot.close());
    assert.match(slot.instanceId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    return slot;
  }

  /** Expects two random ids with a warning. */
  async expectWarning(reason: string, place: string): Promise<void> {
    const [one, two] = [await this.take(), await this.take()];
    assert.equal(one.warning, `${reason}: ${place}`);
    assert.notEqual(one.instanceId, two.instanceId);
  }

  /** Runs the rest of the test as an ordinary user, for whom permissions count. */
  withoutRoot(): void {
    if (process.getuid!() !== 0) return;
    fs.chownSync(this.folder, NOBODY, NOBODY);
    process.seteuid!(NOBODY);
  }

  /** Runs a program in a process of its own until the end of the test, and returns the process with its first line. */
  async run(program: string, environment: Readonly<Record<string, string>> = {}): Promise<[ChildProcess, string]> {
    const command = ["--input-type=module", "-e", program, this.base];
    const child = spawn(process.execPath, command, {
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.t.after(() => child.kill("SIGKILL"));
    for await (const line of createInterface(child.stdout!)) return [child, line];
    throw new Error("the program told nothing");
  }
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

test("each known answer is given", () => {
  const text = fs.readFileSync(new URL("../../../state-directory.json", import.meta.url), "utf8");
  const known = JSON.parse(text) as { server: string; license: string; machine_id: string; directory: string }[];
  assert.ok(known.length >= 14);
  for (const { server, license, machine_id: machineId, directory } of known) {
    assert.equal(directoryName({ server, license, machineId }), directory, `${server} ${license} ${machineId}`);
  }
});

test("each system has its base", { skip }, () => {
  const home = { HOME: "/home/ann", XDG_STATE_HOME: "/state", LOCALAPPDATA: "/local" };
  assert.equal(defaultBase("linux", home), "/state/seatkeeper");
  assert.equal(defaultBase("freebsd", { HOME: "/home/ann" }), "/home/ann/.local/state/seatkeeper");
  assert.equal(defaultBase("linux", { ...home, XDG_STATE_HOME: "s" }), "/home/ann/.local/state/seatkeeper");
  assert.equal(defaultBase("darwin", home), "/home/ann/Library/Application Support/Seatkeeper");
  assert.equal(defaultBase("win32", home), "/local/Seatkeeper");
  for (const platform of ["linux", "darwin", "win32"]) {
    const environment = { HOME: "here", XDG_STATE_HOME: "", LOCALAPPDATA: "there" };
    assert.throws(() => defaultBase(platform, environment), { message: /^no-home: / });
  }
});

test("two seats of a process take two slots, and a slot that is left is taken again", async (t) => {
  const place = new Place(t);
  const [one, two] = await Promise.all([place.take(), place.take()]);
  assert.notEqual(one.instanceId, two.instanceId);
  assert.deepEqual([one.warning, two.warning], [undefined, undefined]);
  const first = JSON.parse(fs.readFileSync(place.file(1), "utf8")) as { instance_id: string };
  const holder = [one, two].find(({ instanceId }) => instanceId === first.instance_id)!;
  holder.close();
  holder.close();
  assert.equal((await place.take()).instanceId, first.instance_id);
});

test("directories and files are for their user alone", { skip }, async (t) => {
  const place = new Place(t);
  const before = process.umask(0);
  t.after(() => process.umask(before));
  const { instanceId } = await place.take();
  for (const path of [dirname(place.base), place.base, place.directory]) {
    assert.equal(fs.statSync(path).mode & 0o777, 0o700, path);
  }
  assert.equal(fs.statSync(place.file(1)).mode & 0o777, 0o600);
  assert.equal(fs.readFileSync(place.file(1), "utf8"), `{"version":1,"instance_id":"${instanceId}"}`);
});

test("the successor of a killed process has its id", async (t) => {
  const place = new Place(t);
  const [first, idOfFirst] = await place.run(HOLD_SLOT);
  const [, idOfSecond] = await place.run(HOLD_SLOT);
  const third = await place.take();
  assert.equal(new Set([idOfFirst, idOfSecond, third.instanceId]).size, 3);
  await kill(first);
  assert.equal((await place.take()).instanceId, idOfFirst);
});

test("a process of another language respects the lock", { skip }, async (t) => {
  const place = new Place(t);
  const { instanceId } = await place.take();
  assert.throws(() => execFileSync("flock", ["-n", place.file(1), "true"]));
  const [child, other] = await place.run(HOLD_SLOT);
  assert.notEqual(other, instanceId);
  assert.throws(() => execFileSync("flock", ["-n", place.file(2), "true"]));
  await kill(child);
  execFileSync("flock", ["-n", place.file(2), "true"]);
});

test("content that is not valid is replaced, and valid content stays", async (t) => {
  const place = new Place(t);
  const valid = `{"version":1,"instance_id":"${KNOWN_ID}","more":[1]}`;
  (await place.take()).close();
  fs.writeFileSync(place.file(1), valid.padEnd(4_096));
  const slot = await place.take();
  assert.equal(slot.instanceId, KNOWN_ID);
  slot.close();
  const wrong = [
    "",
    "{",
    "[]",
    "null",
    valid.slice(0, -1),
    valid.padEnd(4_097),
    "[".repeat(4_000),
    valid.replace("1,", "2,"),
    valid.replace("1,", "true,"),
    valid.replace("4f6e", "1f6e"),
    valid.replace("-9b0a", "-1b0a"),
    valid.replace(KNOWN_ID, KNOWN_ID.toUpperCase()),
    valid.replace(KNOWN_ID, `${KNOWN_ID}\\n`),
    "\0".repeat(100),
  ].map((text) => Buffer.from(text));
  // Neither is UTF-8: the second has the text of one byte 0xff among its other members.
  wrong.push(Buffer.from(valid, "utf16le"), Buffer.from(valid.replace("[1]", '["\u00ff"]'), "latin1"));
  for (const content of wrong) {
    assert.equal(readInstanceId(content), undefined, String(content).slice(0, 80));
    fs.writeFileSync(place.file(1), content);
    const fresh = await place.take();
    assert.equal(fs.readFileSync(place.file(1), "utf8"), `{"version":1,"instance_id":"${fresh.instanceId}"}`);
    fresh.close();
  }
});

test("a name that is no file of this user is passed over", { skip }, async (t) => {
  const place = new Place(t);
  place.withoutRoot();
  (await place.take()).close();
  fs.chmodSync(place.file(1), 0);
  fs.mkdirSync(place.file(2));
  execFileSync("mkfifo", [place.file(3)]);
  fs.symlinkSync(join(place.base, "elsewhere"), place.file(4));
  const { instanceId, warning } = await place.take();
  assert.equal(warning, undefined);
  assert.match(fs.readFileSync(place.file(5), "utf8"), new RegExp(instanceId));
  assert.equal(fs.existsSync(join(place.base, "elsewhere")), false);
});

test("a base or a directory that is a file or a link", { skip }, async (t) => {
  const place = new Place(t);
  fs.writeFileSync(dirname(place.base), "");
  await place.expectWarning("unusable", place.base);
  fs.rmSync(dirname(place.base));
  fs.mkdirSync(dirname(place.base));
  fs.writeFileSync(place.base, "");
  await place.expectWarning("not-a-directory", place.base);
  fs.rmSync(place.base);
  const real = join(place.folder, "real");
  fs.mkdirSync(real, { mode: 0o700 });
  for (const target of [real, "missing"]) {
    fs.symlinkSync(target, place.base);
    await place.expectWarning("not-a-directory", place.base);
    assert.equal((await takeSlot(`${place.base}/`, HOLDER)).warning, `not-a-directory: ${place.base}`);
    fs.rmSync(place.base);
  }
  fs.mkdirSync(place.base, { mode: 0o700 });
  fs.symlinkSync(real, place.directory);
  await place.expectWarning("not-a-directory", place.directory);
  assert.deepEqual(fs.readdirSync(real), []);
});

test("directories that others may write to", { skip }, async (t) => {
  const place = new Place(t);
  (await place.take()).close();
  for (const path of [place.base, place.directory]) {
    for (const mode of [0o720, 0o702]) {
      fs.chmodSync(path, mode);
      await place.expectWarning("writable-by-others", path);
    }
    fs.chmodSync(path, 0o755);
  }
  assert.equal((await place.take()).warning, undefined);
});

test("directories of another user", { skip: skip || (process.getuid!() !== 0 && "needs root") }, async (t) => {
  const place = new Place(t);
  (await place.take()).close();
  for (const path of [place.directory, place.base]) {
    fs.chownSync(path, NOBODY, NOBODY);
    await place.expectWarning("foreign-owner", path);
  }
});

test("directories that cannot be created or written", { skip }, async (t) => {
  const place = new Place(t);
  place.withoutRoot();
  fs.mkdirSync(dirname(place.base), 0o500);
  await place.expectWarning("unusable", place.base);
  fs.chmodSync(dirname(place.base), 0o700);
  fs.mkdirSync(place.base, 0o500);
  await place.expectWarning("unusable", place.directory);
  fs.chmodSync(place.base, 0o700);
  fs.mkdirSync(place.directory, 0o500);
  await place.expectWarning("unusable", place.file(1));
  fs.chmodSync(place.directory, 0o700);
  const first = await place.take();
  first.close();
  // A slot that exists needs no right to create files.
  fs.chmodSync(place.directory, 0o500);
  assert.equal((await place.take()).instanceId, first.instanceId);
});

test("a directory without a free slot, and a path that is none", { skip }, async (t) => {
  const place = new Place(t);
  (await place.take()).close();
  fs.rmSync(place.file(1));
  for (let number = 1; number <= 4_096; number += 1) fs.symlinkSync("nowhere", place.file(number));
  await place.expectWarning("no-free-slot", place.directory);
  assert.match((await takeSlot("\0", HOLDER)).warning!, /^unusable: /);
});

test("a host without the program flock, or with one that fails", { skip: process.platform !== "linux" }, async (t) => {
  const place = new Place(t);
  const path = process.env["PATH"];
  t.after(() => (process.env["PATH"] = path));
  process.env["PATH"] = place.folder;
  await place.expectWarning("unusable", place.file(1));
  for (const script of ["echo no locks here >&2; exit 1", "exit 71"]) {
    fs.writeFileSync(join(place.folder, "flock"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    await place.expectWarning("unusable", place.file(1));
  }
});

/** Puts a program `flock` before all others that outlives the end of its shell. */
function hangInFlock(place: Place, t: TestContext): void {
  const path = process.env["PATH"];
  t.after(() => (process.env["PATH"] = path));
  fs.writeFileSync(join(place.folder, "flock"), "#!/bin/sh\nsleep 20\n:\n", { mode: 0o755 });
  process.env["PATH"] = `${place.folder}:${path}`;
}

test("a program flock that hangs costs no seat, and no acquire that is given up", { skip: process.platform !== "linux" }, async (t) => {
  const place = new Place(t);
  hangInFlock(place, t);
  const server = await scripted(() => ({ status: 201, body: GRANT }));
  t.after(server.close);
  await using client = new Client(server.url, { token: "t", eventStreams: false, stateDir: place.base });
  const hold = (signal?: AbortSignal) => client.license("K").acquire({ machineId: "m", perProcess: true, ...(signal && { signal }) });
  const abort = new AbortController();
  const began = performance.now();
  const given = assert.rejects(hold(abort.signal), /enough/);
  setTimeout(() => abort.abort(new Error("enough")), 100);
  await given;
  assert.ok(performance.now() - began < 2_000, "the abort ends the wait");
  assert.equal(getEventListeners(abort.signal, "abort").length, 0);
  assert.deepEqual(server.arrived(), []);
  assert.match((await hold()).warning!, /^unusable: .*slot-1\.lock$/);
  assert.ok(performance.now() - began < 12_000, "the time limit ends the wait");
});

test("a process without descriptors, or without the right to start programs", { skip: process.platform !== "linux" }, async (t) => {
  const place = new Place(t);
  for (const free of [0, 1, 2, 3, 4]) {
    const told = execFileSync("sh", ["-c", `ulimit -n 200; exec "$@"`, "sh", process.execPath, "--input-type=module", "-e", FULL, `${free}`, place.base]);
    assert.match(told.toString(), /^unusable: /, `${free} free descriptors`);
  }
  const confined = ["--experimental-permission", "--allow-fs-read=*", "--allow-fs-write=*", "--input-type=module", "-e", FULL, "100", place.base];
  assert.match(execFileSync(process.execPath, confined, { stdio: ["ignore", "pipe", "ignore"] }).toString(), /^unusable: /);
});

test("a directory that is turned off gives random ids without a warning", async () => {
  for (const off of [null, ""]) {
    const [one, two] = [await takeSlot(off, HOLDER), await takeSlot(off, HOLDER)];
    assert.notEqual(one.instanceId, two.instanceId);
    assert.equal(one.warning, undefined);
  }
});

/** Returns the instance ids of the acquires. */
function idsOf(server: Scripted): unknown[] {
  return server.arrived("POST /api/v1/licenses/acquire").map(({ body }) => body["instance_id"]);
}

/** Acquires two seats at once and a third one after a release; returns the ids of the processes and the first warning. */
async function acquireWith(place: Place, options: Readonly<Record<string, unknown>>): Promise<[unknown[], string | undefined]> {
  const server = await scripted(({ target }) => (target.endsWith("/acquire") ? { status: 201, body: GRANT } : { status: 204 }));
  const client = new Client(server.url, { token: "t", eventStreams: false, stateDir: place.base });
  const hold = () => client.license("CAD-2030").acquire({ machineId: "workstation-7", ...options });
  const first = await hold();
  await hold();
  await first.release();
  await hold();
  await client.close();
  server.close();
  return [idsOf(server), first.warning];
}

test("each seat has an id, and a release leaves the id", async (t) => {
  const [[one, two, after], warning] = await acquireWith(new Place(t), { perProcess: true });
  assert.notEqual(one, two);
  assert.equal(one, after);
  assert.equal(warning, undefined);
});

test("without the option, or with an id of the program, no file is made", async (t) => {
  const place = new Place(t);
  assert.deepEqual(await acquireWith(place, {}), [[undefined, undefined, undefined], undefined]);
  assert.deepEqual(await acquireWith(place, { instanceId: "own", perProcess: true }), [["own", "own", "own"], undefined]);
  assert.deepEqual(fs.readdirSync(place.folder), []);
});

test("a seat is held without a directory, and tells the reason", async (t) => {
  const place = new Place(t);
  fs.writeFileSync(dirname(place.base), "");
  const [ids, warning] = await acquireWith(place, { perProcess: true });
  assert.equal(new Set(ids).size, 3);
  assert.equal(warning, `unusable: ${place.base}`);
});

test("a denied acquire, an aborted one and a closed client leave the slot", async (t) => {
  const place = new Place(t);
  const server = await scripted(() => ({ status: 403, body: { type: "/problems/license-full" } }));
  const client = new Client(server.url, { token: "t", stateDir: place.base });
  const hold = (options = {}) => client.license("K").acquire({ machineId: "m", perProcess: true, ...options });
  await assert.rejects(hold(), DeniedError);
  await assert.rejects(hold(), DeniedError);
  const abort = new AbortController();
  const aborted = hold({ signal: abort.signal });
  abort.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
  await client.close();
  await assert.rejects(hold(), { code: "closed" });
  const slot = await takeSlot(place.base, { server: server.url, license: "K", machineId: "m" });
  slot.close();
  server.close();
  const [directory] = fs.readdirSync(place.base);
  assert.deepEqual(fs.readdirSync(join(place.base, directory!)), ["slot-1.lock"]);
});

test("an acquire in doubt leaves its slot before its error", async (t) => {
  const place = new Place(t);
  const server = await scripted(({ target }) => (target.endsWith("/acquire") ? { status: 201, body: GRANT, delay: 300 } : { status: 204 }));
  t.after(server.close);
  let requests = 0;
  const send: typeof fetch = (url, options) => (++requests === 1 ? Promise.reject(new TypeError("fetch failed")) : fetch(url, options));
  await using client = new Client(server.url, { token: "t", eventStreams: false, fetch: send, stateDir: place.base });
  await assert.rejects(client.license("K").acquire({ machineId: "m", patience: 0, perProcess: true }), OfflineError);
  assert.equal(server.arrived("DELETE ").length, 1, "the session of the lost answer is found and released");
  const slot = await takeSlot(place.base, { server: server.url, license: "K", machineId: "m" });
  slot.close();
  const [directory] = fs.readdirSync(place.base);
  assert.deepEqual(fs.readdirSync(join(place.base, directory!)), ["slot-1.lock"]);
});

test("an acquire after one that was given up waits for the slot", async (t) => {
  const place = new Place(t);
  const server = await scripted((_, earlier) => ({ status: 201, body: GRANT, delay: earlier === 0 ? 300 : 0 }));
  t.after(server.close);
  await using client = new Client(server.url, { token: "t", eventStreams: false, stateDir: place.base });
  const hold = (options = {}) => client.license("K").acquire({ machineId: "m", perProcess: true, ...options });
  const abort = new AbortController();
  const given = assert.rejects(hold({ signal: abort.signal }), /enough/);
  while (server.arrived().length === 0) await sleep(5);
  abort.abort(new Error("enough"));
  await given;
  await hold();
  const ids = idsOf(server);
  assert.deepEqual([ids.length, new Set(ids).size], [2, 1]);
});

test("a seat that is lost for good leaves its slot, unless the server may still hold the session", async (t) => {
  for (const [status, slots] of [[410, 1], [403, 2]] as const) {
    const place = new Place(t);
    const ended = { type: "x/ended", title: "t", reason: "revoked" };
    const server = await scripted(({ target }) => (target.startsWith("PATCH") ? { status, body: ended } : { status: 201, body: GRANT }));
    t.after(server.close);
    await using client = new Client(server.url, { token: "t", eventStreams: false, stateDir: place.base });
    const hold = () => client.license("K").acquire({ machineId: "m", perProcess: true });
    const lost = await hold();
    client.wake();
    for await (const { kind } of lost.states()) if (kind === "lost") break;
    const seat = await hold();
    assert.equal(new Set(idsOf(server)).size, slots, `${status}`);
    assert.equal(await lost.release(), true);
    assert.deepEqual([lost.state.kind, seat.state.kind], ["released", "active"]);
  }
});

test(
  "the successor of a killed process holds the one seat at once",
  { skip: BINARY === undefined && "SDK_TEST_SERVER names no server", timeout: 120_000 },
  async (t) => {
    const place = new Place(t);
    await using server = await Server.start();
    const terms = ["--seats", "1", "--ttl-seconds", "3600", "--count-per", "process"];
    server.run("license", "create", "--key", "PROCESSES", ...terms);
    const [child, session] = await place.run(HOLD_SEAT, { URL: server.url, TOKEN: server.token() });
    await using client = new Client(server.url, { token: server.token(), stateDir: place.base });
    const hold = () => client.license("PROCESSES").acquire({ machineId: "m", perProcess: true });
    await assert.rejects(hold(), { code: "license-full" });
    await kill(child);
    const seat = await hold();
    assert.equal(seat.sessionId, session);
    seat.check();
  },
);
