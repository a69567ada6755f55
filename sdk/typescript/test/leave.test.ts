/** A program that leaves a seat to a second program of the same name. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, LicenseKey } from "../src/index.node.js";
import { GRANT, type Reply, scripted } from "./scripted.js";
import { BINARY, Server } from "./server.js";

const SKIP = BINARY === undefined && "SDK_TEST_SERVER names no server";
const TERMS = { ...GRANT, heartbeat_interval_seconds: 1 };

test("a seat that is left sends no release and no heartbeat", async (t) => {
  const server = await scripted(() => ({ status: 201, body: TERMS }));
  t.after(server.close);
  const client = new Client(server.url, { token: "t", eventStreams: false });
  const seat = await client.license("K").acquire({ machineId: "m" });
  const told: string[] = [];
  const telling = (async () => {
    for await (const { kind } of seat.states()) told.push(kind);
  })();
  await sleep(10);
  seat.leave();
  seat.leave();
  await telling;
  assert.deepEqual(told, ["active", "released"]);
  assert.ok(seat.signal.aborted);
  assert.throws(() => seat.check(), { code: "released" });
  assert.equal(await seat.release(), false, "the server holds the seat");
  await client.close();
  client.wake();
  await sleep(1_200);
  assert.deepEqual(server.arrived().map(({ target }) => target), ["POST /api/v1/licenses/acquire"]);
});

test("a seat that is left ends its heartbeat and its stream", async (t) => {
  const server = await scripted(
    ({ target }): Reply => ({ status: 200, body: TERMS, delay: target.startsWith("PATCH") ? 60_000 : 0 }),
    (stream) => stream.send(":\n\n"),
  );
  t.after(server.close);
  await using client = new Client(server.url, { token: "t" });
  const seat = await client.license("K").acquire({ machineId: "m" });
  const stream = await server.stream(0);
  client.wake();
  while (server.arrived("PATCH").length === 0) await sleep(5);
  seat.leave();
  await stream.closed;
  await sleep(1_200);
  assert.deepEqual([seat.state.kind, server.arrived("PATCH").length, server.arrived("DELETE").length], ["released", 1, 0]);
});

test("a seat that is given back is given back although it is left", async (t) => {
  const server = await scripted(({ target }): Reply => ({ status: 201, body: GRANT, delay: target.startsWith("DELETE") ? 200 : 0 }));
  t.after(server.close);
  await using client = new Client(server.url, { token: "t", eventStreams: false });
  const seat = await client.license("K").acquire({ machineId: "m" });
  const released = seat.release();
  seat.leave();
  assert.equal(await released, true);
});

test("a second program keeps the seat that the first one leaves", { skip: SKIP, timeout: 60_000 }, async () => {
  await using server = await Server.start();
  const key = "SHARED-2030";
  server.license(key, { ttl: 3, clients: "key" });
  await using one = new Client(server.url, { token: new LicenseKey(key) });
  await using two = new Client(server.url, { token: new LicenseKey(key) });
  const [first, second] = [
    await one.license(key).acquire({ machineId: "m" }),
    await two.license(key).acquire({ machineId: "m" }),
  ];
  assert.equal(first.sessionId, second.sessionId);
  first.leave();
  await one.close();
  // Longer than the TTL.
  await sleep(4_000);
  second.check();
  assert.deepEqual([second.state.kind, server.liveMachines()], ["active", ["m"]]);
});
