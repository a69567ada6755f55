/** A client with a list of servers. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, OfflineError, SeatkeeperError } from "../src/index.node.js";
import type { Server } from "../src/server.js";
import { Servers } from "../src/servers.js";
import { GRANT, scripted } from "./scripted.js";

const ACQUIRE = "POST /api/v1/licenses/acquire";
/** `fetch` refuses port 1 by itself. */
const CLOSED = "http://127.0.0.1:2";

const granting = () => scripted(() => ({ status: 201, body: GRANT }));

async function takeAndGive(client: Client, patience: number): Promise<void> {
  const seat = await client.license("K").acquire({ machineId: "m", patience });
  await seat.release();
}

test("a server that refuses connections is passed over, and the next one kept", async () => {
  const [good, spare] = [await granting(), await granting()];
  const client = new Client([CLOSED, good.url, spare.url], { token: "t" });
  for (let seats = 0; seats < 3; seats += 1) await takeAndGive(client, 0);
  assert.deepEqual([good.arrived().length, spare.arrived().length], [6, 0]);
  good.close();
  spare.close();
});

test("a server none of whose addresses answers is passed over with the same request", async () => {
  const good = await granting();
  const error = (code: string) => Object.assign(new Error(code), { syscall: "connect", code });
  const cause = Object.assign(new AggregateError([error("ETIMEDOUT"), error("ENETUNREACH")]), { code: "ETIMEDOUT" });
  const send: typeof fetch = (url, options) =>
    String(url).startsWith(CLOSED) ? Promise.reject(new TypeError("fetch failed", { cause })) : fetch(url, options);
  await takeAndGive(new Client([CLOSED, good.url], { token: "t", fetch: send, eventStreams: false }), 0);
  assert.equal(good.arrived(ACQUIRE).length, 1);
  good.close();
});

/** Starts a server that drops each SYN: its process is stopped, and its queue of connections is full. */
async function silent(t: TestContext): Promise<string> {
  const program = `require("net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, function () { console.log(this.address().port); })`;
  const stopped = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(stopped.stdout, "data")) as [Buffer];
  stopped.kill("SIGSTOP");
  const port = Number(line);
  const queue = Array.from({ length: 5 }, () => connect(port, "127.0.0.1").on("error", () => undefined));
  t.after(() => {
    stopped.kill("SIGKILL");
    for (const socket of queue) socket.destroy();
  });
  await sleep(300);
  assert.ok(queue.some((socket) => socket.connecting), "the queue is full");
  return `http://127.0.0.1:${port}`;
}

test("a server that drops each SYN is passed over with the same request", { timeout: 60_000, skip: process.platform !== "linux" }, async (t) => {
  const [dead, good] = [await silent(t), await granting()];
  t.after(good.close);
  const client = new Client([dead, good.url], { token: "t", eventStreams: false });
  const began = performance.now();
  await takeAndGive(client, 10);
  assert.ok(performance.now() - began < 6_000, "after three seconds");
  assert.equal(good.arrived(ACQUIRE).length, 1);
});

test("a 503 without Retry-After moves on, and one with it stays", async () => {
  const [good, gone] = [await granting(), await scripted(() => ({ status: 503 }))];
  await takeAndGive(new Client([gone.url, good.url], { token: "t" }), 60);
  assert.deepEqual([gone.arrived(ACQUIRE).length, good.arrived(ACQUIRE).length], [1, 1]);
  const busy = await scripted((_, earlier) =>
    earlier === 0 ? { status: 503, retryAfter: 1 } : { status: 201, body: GRANT },
  );
  await takeAndGive(new Client([busy.url, good.url], { token: "t" }), 60);
  assert.equal(busy.arrived(ACQUIRE).length, 2);
  for (const server of [good, gone, busy]) server.close();
});

test("the second 5xx in a row moves on", async () => {
  for (const reply of [{ status: 503, retryAfter: 1 }, { status: 502 }]) {
    const [good, cutOff] = [await granting(), await scripted(() => reply)];
    await takeAndGive(new Client([cutOff.url, good.url], { token: "t" }), 60);
    assert.deepEqual([cutOff.arrived(ACQUIRE).length, good.arrived(ACQUIRE).length], [2, 1]);
    for (const server of [good, cutOff]) server.close();
  }
});

test("a late answer counts for nothing, also when its node is in use again", async () => {
  const asked: number[] = [];
  const replies: ((status: number) => void)[] = [];
  const node = (number: number): Server => ({
    isSharing: false,
    beacon: () => false,
    open: () => Promise.reject(new Error("no streams")),
    send: () => {
      asked.push(number);
      return new Promise((resolve) => replies.push((status) => resolve({ status, body: "", retryAfter: undefined, requestId: undefined })));
    },
  });
  const servers = new Servers([node(0), node(1)]);
  const send = () => servers.send({ method: "DELETE", path: "/" }, "t", new AbortController().signal);
  const late = send();
  for (const _ of [0, 1]) {
    const leaving = send();
    replies.pop()!(503);
    await leaving;
  }
  replies.pop()!(503);
  await late;
  void send();
  assert.deepEqual(asked, [0, 0, 1, 0]);
});

test("a broken connection moves the next request, and never repeats one", async () => {
  const good = await granting();
  const breaking = createServer((socket) => socket.once("data", () => socket.destroy())).listen(0, "127.0.0.1");
  await once(breaking, "listening");
  const url = `http://127.0.0.1:${(breaking.address() as AddressInfo).port}`;
  const client = new Client([url, good.url], { token: "t" });
  await assert.rejects(takeAndGive(client, 0), (error) => {
    return error instanceof OfflineError && error.failure === "reset-after-send";
  });
  await takeAndGive(client, 0);
  breaking.close();
  good.close();
});

test("a list without a server that answers is offline, and a wrong address misuse", async () => {
  const client = new Client([CLOSED, "http://127.0.0.1:3"], { token: "t" });
  await assert.rejects(takeAndGive(client, 0), (error) => error instanceof OfflineError && error.failure === "refused");
  for (const urls of [[], [CLOSED, "seats"]]) {
    assert.throws(
      () => new Client(urls, { token: "t" }),
      (error) => error instanceof SeatkeeperError && error.code === "misuse",
    );
  }
});
