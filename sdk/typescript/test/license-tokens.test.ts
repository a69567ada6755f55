/** A license key as the source of tokens, against servers of the tests' own. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

import { SECOND } from "../src/core/clocks.js";
import { Client, DeniedError, LicenseKey, OfflineError } from "../src/index.node.js";
import { LicenseTokens } from "../src/license-tokens.js";
import { NodeTransport } from "../src/node-transport.js";
import { type Arrived, GRANT, type Reply, scripted } from "./scripted.js";

const KEY = "CAD-2030-KEY";
const TOKEN = "POST /api/v1/licenses/token";
const ACQUIRE = "POST /api/v1/licenses/acquire";

/** Returns a token that names the machine, and the number of the token. */
function issue({ body }: Arrived, earlier: number): Reply {
  const token = `${String(body["machine_id"])}.${earlier}`;
  return { status: 200, body: { token, token_type: "Bearer", expires_in_seconds: 900 }, delay: 100 };
}

async function acquireAndRelease(client: Client, machineId: string, instanceId: string): Promise<void> {
  const seat = await client.license(KEY).acquire({ machineId, instanceId });
  await seat.release();
}

const TEN = [...Array(10).keys()];

test("each machine has a token, and one request serves all its seats", async () => {
  const server = await scripted((request, earlier) =>
    request.target === TOKEN ? issue(request, earlier) : { status: 201, body: GRANT },
  );
  const client = new Client(server.url, { token: new LicenseKey(KEY, { tenant: "acme" }) });
  await Promise.all(TEN.map((number) => acquireAndRelease(client, `m${number % 2}`, `${number}`)));
  const asked = server.arrived(TOKEN);
  assert.deepEqual(
    asked.map(({ token, body }) => [token, body]),
    ["m0", "m1"].map((machine) => [undefined, { license_key: KEY, machine_id: machine, tenant: "acme" }]),
  );
  for (const { token, body } of server.arrived(ACQUIRE)) assert.equal(token?.split(".")[0], body["machine_id"]);
  await client.close();
  server.close();
});

test("a rejected license token is replaced once for all seats of its machine", async () => {
  const server = await scripted((request, earlier) => {
    if (request.token === undefined) return issue(request, earlier);
    return request.token.endsWith(".0") ? { status: 401 } : { status: 201, body: GRANT };
  });
  const client = new Client(server.url, { token: new LicenseKey(KEY) });
  await Promise.all(TEN.map((number) => acquireAndRelease(client, "m", `${number}`)));
  assert.equal(server.arrived(TOKEN).length, 2);
  await client.close();
  server.close();
});

test("the seats of a machine have one bearer, and so may share event streams", () => {
  const tokens = new LicenseTokens(new NodeTransport("http://127.0.0.1:1", undefined), () => ({}), () => 0);
  assert.equal(tokens.bearer("m1"), tokens.bearer("m1"));
  assert.notEqual(tokens.bearer("m1"), tokens.bearer("m2"));
});

for (const [kind, remedy] of [
  ["license-not-found", "--clients key"],
  ["not-found", "license_token_key_file"],
] as const) {
  test(`a key that is not good is a denial that names the remedy: ${kind}`, async () => {
    const body = { type: `/problems/${kind}`, title: "Not found", status: 404 };
    const server = await scripted(() => ({ status: 404, body }));
    const key = new LicenseKey(KEY);
    const client = new Client(server.url, { token: key });
    await assert.rejects(client.license(KEY).acquire({ machineId: "m" }), (error) => {
      assert.ok(error instanceof DeniedError);
      assert.equal(error.code, kind);
      const shown = inspect([error, key, client], { showHidden: true, depth: 9 }) + JSON.stringify(key);
      assert.ok(error.message.includes(remedy) && !shown.includes(KEY), shown);
      return true;
    });
    assert.deepEqual([server.arrived(TOKEN).length, server.arrived(ACQUIRE).length], [1, 0]);
    await client.close();
    server.close();
  });
}

test("a busy issuer is asked again, and an absent one is offline", async () => {
  const busy: Reply[] = [{ status: 429, body: { title: "slow down" }, retryAfter: 1 }, { status: 503 }];
  const server = await scripted((request, earlier) =>
    request.target === TOKEN ? (busy[earlier] ?? issue(request, earlier)) : { status: 201, body: GRANT },
  );
  const client = new Client(server.url, { token: new LicenseKey(KEY) });
  await (await client.license(KEY).acquire({ machineId: "m", patience: 60 })).release();
  assert.equal(server.arrived(TOKEN).length, 3);
  await client.close();
  server.close();
  const away = new Client("http://127.0.0.1:2", { token: new LicenseKey(KEY) });
  await assert.rejects(away.license(KEY).acquire({ machineId: "m", patience: 0 }), OfflineError);
});

test("a refused token is no word on a held session", async () => {
  const closed = { status: 404, body: { type: "/problems/license-not-found", title: "none" } };
  const grant = { ...GRANT, expires_in_seconds: 3, heartbeat_interval_seconds: 1 };
  const server = await scripted((request, earlier) => {
    if (request.target === TOKEN) return earlier === 0 ? issue(request, earlier) : closed;
    return request.target === ACQUIRE ? { status: 201, body: grant } : { status: 401 };
  });
  const client = new Client(server.url, { token: new LicenseKey(KEY) });
  const seat = await client.license(KEY).acquire({ machineId: "m" });
  while (server.arrived(TOKEN).length < 3) await sleep(10);
  assert.equal(server.arrived(ACQUIRE).length, 1);
  assert.equal(await seat.release(), false, "the server has not confirmed the release");
  await client.close();
  server.close();
});

test("a key that is closed before the seat is a denial, and no outage", async () => {
  const closed = { status: 404, body: { type: "/problems/license-not-found", title: "none" } };
  const server = await scripted((request, earlier) => {
    if (request.target !== TOKEN) return { status: 401 };
    return earlier === 0 ? issue(request, earlier) : closed;
  });
  const client = new Client(server.url, { token: new LicenseKey(KEY) });
  await assert.rejects(client.license(KEY).acquire({ machineId: "m", patience: 60 }), (error) => {
    return error instanceof DeniedError && error.code === "license-not-found";
  });
  await client.close();
  server.close();
});

const LIFE = 1_000;

/** License tokens under a clock of the test's own. The server gives the second token after `second`. */
async function underClock(delay: number, timeout?: number, second: Promise<void> | number = delay) {
  const server = await scripted((_, earlier) => {
    return { status: 200, body: { token: `t${earlier + 1}`, expires_in_seconds: LIFE }, delay: earlier === 1 ? second : delay };
  });
  const clock = { seconds: 50 };
  const transport = new NodeTransport(server.url, fetch);
  const tokens = new LicenseTokens(transport, (machine) => ({ license_key: KEY, machine_id: machine }), () => clock.seconds * SECOND, timeout);
  return { server, clock, tokens };
}

test("a token is due at four fifths of its life, and replaced in the background", async () => {
  let give: () => void = () => undefined;
  const second = new Promise<void>((resolve) => (give = resolve));
  const { server, clock, tokens } = await underClock(0, undefined, second);
  assert.equal(await tokens.current("m"), "t1");
  clock.seconds += LIFE * 0.8 - 1;
  assert.equal(await tokens.current("m"), "t1");
  await sleep(20);
  assert.equal(server.arrived().length, 1, "before four fifths of the life");
  clock.seconds += 1;
  for (let calls = 0; calls < 20; calls += 1) assert.equal(await tokens.current("m"), "t1", "no request waits");
  give();
  while ((await tokens.current("m")) === "t1") await sleep(5);
  assert.equal(server.arrived().length, 2);
  clock.seconds += LIFE;
  const all = await Promise.all(TEN.map(() => tokens.current("m")));
  assert.deepEqual(new Set(all), new Set(["t3"]));
  assert.equal(server.arrived().length, 3);
  server.close();
});

test("a replacement that fails keeps the token and pauses, and the machines are bounded", async () => {
  const { server, clock, tokens } = await underClock(0);
  assert.equal(await tokens.current("m"), "t1");
  server.close();
  clock.seconds += LIFE * 0.8;
  for (let calls = 0; calls < 20; calls += 1) {
    assert.equal(await tokens.current("m"), "t1");
    await sleep(5);
  }
  clock.seconds += LIFE;
  await assert.rejects(tokens.current("m"));
  for (let number = 0; number < 300; number += 1) await assert.rejects(tokens.current(`m${number}`));
  assert.ok(tokens.size <= 64, `${tokens.size}`);
});

test("a server that hangs is given up", async () => {
  const { server, tokens } = await underClock(60_000, 50);
  const began = Date.now();
  await assert.rejects(tokens.current("m"));
  await assert.rejects(tokens.refresh("m"), { outcome: "timeout" });
  assert.ok(Date.now() - began < 10_000);
  server.close();
});

test("a request for a token is given up although `fetch` takes no notice of its signal", async (t) => {
  let calls = 0;
  const granted = () => Promise.resolve(new Response('{"token":"t1","expires_in_seconds":900}'));
  const send: typeof fetch = () => (++calls === 1 ? new Promise<never>(() => undefined) : granted());
  const tokens = new LicenseTokens(new NodeTransport("http://127.0.0.1:1", send), () => ({}), () => 0, 50);
  const alive = setInterval(() => undefined, 1_000);
  t.after(() => clearInterval(alive));
  const late = sleep(5_000, "pending", { ref: false });
  assert.notEqual(await Promise.race([tokens.current("m").catch(() => "given up"), late]), "pending");
  assert.equal(await tokens.current("m"), "t1");
});
