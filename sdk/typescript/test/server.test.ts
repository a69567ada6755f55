/** Tries the client against a real server; without `SDK_TEST_SERVER` these tests are skipped. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import {
  Client,
  DeniedError,
  LicenseKey,
  OfflineError,
  type Seat,
  SeatkeeperError,
  SeatLostError,
  type State,
} from "../src/index.node.js";
import { Relay } from "./relay.js";
import { BINARY, Server } from "./server.js";

const options = { skip: BINARY === undefined && "SDK_TEST_SERVER names no server", timeout: 60_000 };

/** Fails unless the seat is lost in time. */
async function lostWithin(seat: Seat, milliseconds: number): Promise<void> {
  const end = performance.now() + milliseconds;
  while (!seat.signal.aborted) {
    assert.ok(performance.now() < end, `not lost within ${milliseconds} ms: ${seat.state.kind}`);
    await sleep(5);
  }
}

/** Runs a program to its end, and returns its output. */
async function run(program: string, variables: Record<string, string>): Promise<string> {
  const stdio = ["ignore", "pipe", "inherit"] as const;
  const env = { ...process.env, ...variables };
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { env, stdio: [...stdio] });
  let told = "";
  child.stdout!.on("data", (text) => (told += String(text)));
  const [code] = (await once(child, "close")) as [number];
  assert.equal(code, 0, told);
  return told;
}

function hasCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof SeatkeeperError && error.code === code;
}

test("a seat outlives its TTL by heartbeats, and is given back", options, async () => {
  await using server = await Server.start();
  const told: string[] = [];
  await using client = new Client(server.url, { token: server.token() });
  {
    const onChange = (state: State) => told.push(state.kind);
    await using seat = await client.license(server.license("BEATS", { ttl: 2 })).acquire({ machineId: "m", onChange });
    assert.deepEqual(seat.seats, { used: 1, total: 1 });
    for (let checks = 0; checks < 100; checks += 1) {
      seat.check();
      await sleep(50);
    }
    assert.deepEqual(server.liveMachines(), ["m"]);
    assert.ok(seat.remaining > 0);
    assert.ok(!seat.signal.aborted);
    await seat.release();
    assert.throws(() => seat.check(), hasCode("released"));
    assert.ok(seat.signal.aborted);
  }
  assert.deepEqual(server.liveMachines(), []);
  assert.deepEqual(told, ["active", "released"]);
});

test("a program with a license key alone holds a seat", options, async () => {
  await using server = await Server.start();
  const [key, shut] = [server.license("OPEN", { ttl: 2, clients: "key" }), server.license("SHUT")];
  {
    await using client = new Client(server.url, { token: new LicenseKey(key) });
    const seat = await client.license(key).acquire({ machineId: "m" });
    await sleep(3_000);
    seat.check();
    assert.deepEqual(server.liveMachines(), ["m"]);
  }
  assert.deepEqual(server.liveMachines(), []);
  for (const [name, token] of [
    [shut, new LicenseKey(shut)],
    [key, new LicenseKey(key, { tenant: "another" })],
  ] as const) {
    await using client = new Client(server.url, { token });
    await assert.rejects(client.license(name).acquire({ machineId: "m" }), hasCode("license-not-found"));
  }
});

test("a full license is denied, and a wait gets the seat", options, async () => {
  await using server = await Server.start();
  await using client = new Client(server.url, { token: server.token() });
  const license = client.license(server.license("FULL"));
  const first = await license.acquire({ machineId: "first" });
  await assert.rejects(license.acquire({ machineId: "second" }), (error) => {
    assert.ok(error instanceof DeniedError);
    assert.equal(error.code, "license-full");
    assert.deepEqual(
      error.holders.map(({ machineId, instanceId }) => [machineId, instanceId]),
      [["first", undefined]],
    );
    return true;
  });
  const waiting = license.acquire({ machineId: "second", wait: 30 });
  await sleep(200);
  assert.ok(await first.release());
  (await waiting).check();
});

test("a revoked seat is told with its reason", options, async () => {
  await using server = await Server.start();
  await using client = new Client(server.url, { token: () => Promise.resolve(server.token()) });
  const seat = await client.license(server.license("REVOKED")).acquire({ machineId: "m" });
  const told: string[] = [];
  server.revoke(seat.sessionId);
  for await (const state of seat.states()) told.push(state.kind);
  assert.deepEqual(told, ["active", "lost"]);
  assert.throws(
    () => seat.check(),
    (error) => error instanceof SeatLostError && error.loss.reason === "revoked" && !error.loss.retry,
  );
  assert.ok(seat.signal.reason instanceof SeatLostError);
  assert.ok(await seat.release());
});

test("a revoked seat is told within a second, though no heartbeat is due", options, async () => {
  await using server = await Server.start();
  await using client = new Client(server.url, { token: server.token() });
  const seat = await client.license(server.license("STREAM", { ttl: 600 })).acquire({ machineId: "m" });
  await sleep(300);
  server.revoke(seat.sessionId);
  await lostWithin(seat, 1_000);
  assert.equal((seat.signal.reason as SeatLostError).loss.reason, "revoked");
});

test("two seats share one stream, and the one that is revoked is told within a second", options, async () => {
  await using server = await Server.start();
  await using relay = await Relay.start(server.url);
  await using client = new Client(relay.url, { token: server.token() });
  const license = client.license(server.license("SHARED", { seats: 3, ttl: 600 }));
  const seats = [await license.acquire({ machineId: "first" }), await license.acquire({ machineId: "second" })];
  for (const [revoked, others] of [
    [seats[1]!, [seats[0]!]],
    [seats[0]!, []],
  ] as const) {
    await sleep(500);
    assert.equal(relay.openStreams, 1);
    server.revoke(revoked.sessionId);
    await lostWithin(revoked, 1_000);
    assert.equal((revoked.signal.reason as SeatLostError).loss.reason, "revoked");
    for (const seat of others) seat.check();
  }
  assert.ok(relay.streams <= 2, `${relay.streams} requests for a stream`);
});

test("a seat that joins a stream is told within a second, as are the seats before it", options, async () => {
  await using server = await Server.start();
  await using relay = await Relay.start(server.url);
  await using client = new Client(relay.url, { token: server.token() });
  const license = client.license(server.license("JOINED", { seats: 3, ttl: 600 }));
  const seats: Seat[] = [];
  for (const machineId of ["first", "second", "third"]) {
    seats.push(await license.acquire({ machineId }));
    await sleep(300);
  }
  // The pause before the second reopening is longer.
  while (relay.streams < 3) await sleep(10);
  await sleep(300);
  assert.deepEqual([relay.streams, relay.openStreams], [3, 1]);
  for (const seat of seats.reverse()) {
    server.revoke(seat.sessionId);
    await lostWithin(seat, 1_000);
  }
  assert.equal(relay.streams, 3);
});

test("without event streams a loss is told by a heartbeat", options, async () => {
  await using server = await Server.start();
  await using client = new Client(server.url, { token: server.token(), eventStreams: false });
  const seat = await client.license(server.license("NO-STREAM", { ttl: 600 })).acquire({ machineId: "m" });
  await sleep(300);
  server.revoke(seat.sessionId);
  await sleep(1_500);
  seat.check();
  client.wake();
  await lostWithin(seat, 1_000);
});

test("a stream that is cut is opened again", options, async () => {
  await using server = await Server.start();
  await using relay = await Relay.start(server.url);
  await using client = new Client(relay.url, { token: server.token() });
  const seat = await client.license(server.license("CUT", { ttl: 600 })).acquire({ machineId: "m" });
  for (let cuts = 1; cuts <= 3; cuts += 1) {
    while (relay.streams < cuts) await sleep(10);
    await sleep(300);
    seat.check();
    assert.equal(seat.state.kind, "active");
    relay.cut();
  }
  while (relay.streams < 4) await sleep(10);
  await sleep(300);
  server.revoke(seat.sessionId);
  await lostWithin(seat, 1_000);
});

test("a stream that is swallowed changes nothing", options, async () => {
  await using server = await Server.start();
  await using relay = await Relay.start(server.url, { swallowStreams: true });
  await using client = new Client(relay.url, { token: server.token() });
  const told: string[] = [];
  const onChange = (state: State) => told.push(state.kind);
  const seat = await client.license(server.license("SWALLOWED", { ttl: 4 })).acquire({ machineId: "m", onChange });
  await sleep(5_000);
  assert.deepEqual([relay.streams, told], [1, ["active"]]);
  server.revoke(seat.sessionId);
  await lostWithin(seat, 3_000);
});

test("a client that is closed leaves no open handle", options, async () => {
  await using server = await Server.start();
  const key = server.license("HANDLES", { seats: 3, ttl: 600 });
  const program = `
    import { Client } from ${JSON.stringify(new URL("../src/index.node.js", import.meta.url).href)};
    const open = () => process.getActiveResourcesInfo().filter((name) => /TCP|TLS|Timeout|Immediate/.test(name)).join();
    const client = new Client(process.env.URL, { token: process.env.TOKEN });
    const seats = [];
    for (const machineId of ["m1", "m2", "m3"]) seats.push(await client.license(process.env.KEY).acquire({ machineId }));
    await new Promise((resolve) => setTimeout(resolve, 500));
    await client.close();
    await new Promise((resolve) => setTimeout(resolve, 200));
    console.log(\`open: \${open()}\`);
  `;
  const began = performance.now();
  const told = await run(program, { URL: server.url, TOKEN: server.token(), KEY: key });
  assert.equal(told, "open: \n");
  assert.ok(performance.now() - began < 10_000);
  assert.deepEqual(server.liveMachines(), []);
});

test("a release whose token is rejected frees the seat by its code", options, async () => {
  await using server = await Server.start();
  const sent: string[] = [];
  const send = (url: Parameters<typeof fetch>[0], init: RequestInit = {}) => {
    const headers = new Headers(init.headers);
    const bearer = headers.has("Authorization") ? "" : " without a token";
    sent.push(`${init.method ?? "GET"} ${new URL(String(url)).pathname.replace(/[0-9a-f-]{36}/, "ID")}${bearer}`);
    if (init.method === "DELETE") headers.set("Authorization", "Bearer rejected");
    return fetch(url, { ...init, headers });
  };
  await using client = new Client(server.url, { token: server.token(), fetch: send, eventStreams: false });
  const seat = await client.license(server.license("CODE", { ttl: 600 })).acquire({ machineId: "m" });
  assert.equal(await seat.release(), false);
  const sessions = "/api/v1/licenses/sessions";
  assert.deepEqual(sent.slice(1), [
    `DELETE ${sessions}/ID`,
    `DELETE ${sessions}/ID`,
    `POST ${sessions}/release without a token`,
  ]);
  assert.deepEqual(server.liveMachines(), []);
});

test("the audit log names the program", options, async () => {
  await using server = await Server.start();
  const application = { name: "cad", version: "7.1" };
  await using client = new Client(server.url, { token: server.token(), application });
  const seat = await client.license(server.license("NAMED", { ttl: 2 })).acquire({ machineId: "m" });
  seat.activity();
  assert.equal(server.liveSessions()[0]?.user_agent, "cad/7.1 (typescript/0.1.0)");
  await sleep(2_500);
  assert.equal(seat.state.kind, "active");
});

test("a dead server is a loss at the deadline, and its return a seat again", options, async () => {
  await using server = await Server.start();
  await using client = new Client(server.url, { token: server.token() });
  const seat = await client.license(server.license("CRASH", { ttl: 2 })).acquire({ machineId: "m" });
  await server.kill();
  // A loop over the states keeps no process alive.
  const alive = setInterval(() => undefined, 1_000);
  const told: string[] = [];
  for await (const state of seat.states()) {
    told.push(state.kind);
    if (state.kind === "lost") {
      assert.deepEqual([state.reason, state.retry], ["deadline", true]);
      assert.throws(() => seat.check(), hasCode("lost"));
      await server.restart();
    }
    if (told.includes("lost") && state.kind === "active") break;
  }
  clearInterval(alive);
  assert.deepEqual(told.slice(0, 3), ["active", "offline", "lost"]);
  seat.check();
});

test("a process that has nothing more to do gives its seat back", options, async () => {
  await using server = await Server.start();
  const key = server.license("EXIT", { ttl: 3_600 });
  const program = `
    import { Client } from ${JSON.stringify(new URL("../src/index.node.js", import.meta.url).href)};
    const client = new Client(process.env.URL, { token: process.env.TOKEN });
    await client.license(process.env.KEY).acquire({ machineId: "exit" });
    console.log("held");
  `;
  await run(program, { URL: server.url, TOKEN: server.token(), KEY: key });
  assert.deepEqual(server.liveMachines(), []);
});

test("an acquire that is aborted holds nothing", options, async () => {
  await using server = await Server.start();
  await using client = new Client(server.url, { token: server.token() });
  const license = client.license(server.license("ABORT", { ttl: 60 }));
  await using first = await license.acquire({ machineId: "first" });
  const signal = AbortSignal.timeout(300);
  await assert.rejects(license.acquire({ machineId: "second", wait: "forever", signal }), { name: "TimeoutError" });
  assert.deepEqual(server.liveMachines(), ["first"]);
  first.check();
  await client.close();
  assert.deepEqual(server.liveMachines(), []);
  await assert.rejects(license.acquire({ machineId: "late" }), hasCode("closed"));
});

test("a rejected token is replaced once for all seats", options, async () => {
  await using server = await Server.start();
  const key = server.license("TOKENS", { seats: 9 });
  let asked = 0;
  const token = () => {
    asked += 1;
    return asked === 1 ? "stale" : server.token();
  };
  await using client = new Client(server.url, { token });
  const machines = ["m1", "m2", "m3", "m4"];
  await Promise.all(machines.map((machineId) => client.license(key).acquire({ machineId })));
  assert.equal(asked, 2);
  assert.deepEqual(server.liveMachines(), machines);
  await using stranger = new Client(server.url, { token: "not-a-token" });
  await assert.rejects(stranger.license(key).acquire({ machineId: "m" }), hasCode("unauthenticated"));
});

test("a callback that fails costs no seat", options, async () => {
  await using server = await Server.start();
  await using client = new Client(server.url, { token: server.token() });
  const warned = once(process, "warning");
  const onChange = () => {
    throw new Error("the program's own fault");
  };
  const seat = await client.license(server.license("CALLBACK")).acquire({ machineId: "m", onChange });
  const [warning] = (await warned) as [Error];
  assert.equal(warning.message, "the program's own fault");
  seat.check();
});

test("a wrong address, a closed port and an unknown key are typed errors", options, async () => {
  await using server = await Server.start();
  for (const url of ["seats.example", "ftp://seats.example", "http://", "http://host:port"]) {
    assert.throws(() => new Client(url, { token: "t" }), hasCode("misuse"));
  }
  await using nobody = new Client("http://127.0.0.1:1", { token: "t" });
  await assert.rejects(nobody.license("K").acquire({ machineId: "m", patience: 0.2 }), OfflineError);
  await using client = new Client(server.url, { token: server.token() });
  await assert.rejects(client.license("NONE").acquire({ machineId: "m" }), hasCode("license-not-found"));
  await assert.rejects(client.license("NONE").acquire({ machineId: "" }), hasCode("misuse"));
  await assert.rejects(client.license("NONE").acquire({ machineId: "m", wait: NaN }), hasCode("misuse"));
});

for (const [what, answer] of [
  ["a page of a proxy", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"],
  ["a page that breaks off", "HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n<html>"],
  ["another protocol", "SSH-2.0-OpenSSH\r\n"],
  ["a closed connection", ""],
] as const) {
  test(`no server: ${what} is no answer`, async () => {
    const listener = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.end(answer));
    });
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as { port: number };
    await using client = new Client(`http://127.0.0.1:${port}`, { token: "t" });
    await assert.rejects(client.license("K").acquire({ machineId: "m", patience: 0.3 }), OfflineError);
    listener.close();
  });
}
