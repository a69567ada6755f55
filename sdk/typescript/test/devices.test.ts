/** Screens of devices on a real server; without `SDK_TEST_SERVER` the tests that need one are skipped. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, DeniedError, type DeviceType, LicenseKey, type Seat, SeatkeeperError, type State } from "../src/index.node.js";
import { scripted } from "./scripted.js";
import { BINARY, Server } from "./server.js";

const options = { skip: BINARY === undefined && "SDK_TEST_SERVER names no server", timeout: 60_000 };

function deviceOf(client: Client, deviceId: string, deviceType: DeviceType = "tv", deviceName?: string) {
  return client.device({ deviceId, deviceType, ...(deviceName === undefined ? {} : { deviceName }) });
}

async function lostWithin(seat: Seat, milliseconds: number): Promise<Extract<State, { kind: "lost" }>> {
  const end = performance.now() + milliseconds;
  while (!seat.signal.aborted) {
    assert.ok(performance.now() < end, `not lost within ${milliseconds} ms`);
    await sleep(5);
  }
  const { state } = seat;
  return state.kind === "lost" ? state : assert.fail(state.kind);
}

test("devices: a screen outlives its TTL by heartbeats, and is given back", options, async () => {
  await using server = await Server.start({ SEATKEEPER_DEVICES_TTL_SECONDS: "3" });
  await using client = new Client(server.url, { token: server.token() });
  const told: string[] = [];
  const seat = await deviceOf(client, "tv").admit({ onChange: (state) => told.push(state.kind) });
  assert.deepEqual(seat.seats, { used: 1, total: 1 });
  seat.activity();
  await sleep(5_000);
  seat.check();
  assert.deepEqual(told, ["active"]);
  assert.equal(server.liveSessions()[0]?.session_id, seat.sessionId);
  assert.ok(await seat.release());
  assert.deepEqual(server.liveSessions(), []);
});

test("devices: a screen that another device takes is told within a second, with the device's name", options, async () => {
  await using server = await Server.start();
  await using client = new Client(server.url, { token: server.token() });
  const tv = await deviceOf(client, "tv").admit();
  await sleep(300);
  const phone = await deviceOf(client, "phone", "mobile", "Ann’s phone").admit();
  const { reason, by, retry } = await lostWithin(tv, 1_000);
  assert.deepEqual([reason, by, retry], ["evicted", "Ann’s phone", false]);
  phone.check();
  assert.deepEqual(
    server.liveSessions().map((session) => session.device_name),
    ["Ann’s phone"],
  );
});

test("devices: a remembered session goes on", options, async () => {
  await using server = await Server.start();
  const first = new Client(server.url, { token: server.token(), eventStreams: false });
  const seat = await deviceOf(first, "tv").admit();
  await using second = new Client(server.url, { token: server.token() });
  const again = await deviceOf(second, "tv").admit({ session: seat.sessionId! });
  assert.equal(again.sessionId, seat.sessionId);
  await first.close();
});

test("devices: a full plan names its devices, and a chosen one makes room", options, async () => {
  await using server = await Server.start();
  server.run("plan", "create", "strict", "--devices", "1", "--when-full", "deny");
  server.run("subscription", "create", "--user", "ann", "--plan", "strict");
  await using client = new Client(server.url, { token: server.token() });
  const tv = await deviceOf(client, "tv", "tv", "Living room").admit();
  await sleep(300);
  const phone = deviceOf(client, "phone", "mobile");
  const denied = await phone.admit().then(
    () => assert.fail("admitted"),
    (error: unknown) => (error instanceof DeniedError ? error : assert.fail(String(error))),
  );
  assert.equal(denied.code, "devices-full");
  const [shown, ...more] = denied.devices;
  assert.deepEqual(
    [shown?.sessionId, shown?.deviceType, shown?.deviceName, more.length, denied.problem.deviceLimit],
    [tv.sessionId, "tv", "Living room", 0, 1],
  );
  const seat = await phone.admit({ replace: shown!.sessionId });
  await lostWithin(tv, 1_000);
  seat.check();
});

test("devices: a refusal to admit shows what the server told", async () => {
  const body = {
    ...{ type: "/problems/devices-full", title: "full", device_limit: 2 },
    sessions: [{ session_id: "s", last_heartbeat_at: "2030-01-31T00:00:00Z" }, { device_name: "without a session" }, 7],
  };
  const server = await scripted(() => ({ status: 403, body }));
  const client = new Client(server.url, { token: "t" });
  await assert.rejects(deviceOf(client, "d").admit(), (error: unknown) => {
    assert.ok(error instanceof DeniedError);
    assert.deepEqual(error.devices, [{ sessionId: "s", lastHeartbeatAt: "2030-01-31T00:00:00Z" }]);
    return true;
  });
  assert.equal(server.arrived().length, 1);
  server.close();
});

test("devices: a license key and an empty id are misuse", async () => {
  const isMisuse = (error: unknown) => error instanceof SeatkeeperError && error.code === "misuse";
  const client = new Client("http://127.0.0.1:2", { token: new LicenseKey("K") });
  assert.throws(() => deviceOf(client, "d"), isMisuse);
  await assert.rejects(deviceOf(new Client("http://127.0.0.1:2", { token: "t" }), "").admit(), isMisuse);
});
