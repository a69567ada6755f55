/** Errors in the hands of support: ids of requests and remedies. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, OfflineError, SeatkeeperError, SeatLostError } from "../src/index.node.js";
import { GRANT, type Reply, scripted } from "./scripted.js";

async function errorOf(url: string): Promise<SeatkeeperError> {
  const acquire = new Client(url, { token: "t" }).license("K").acquire({ machineId: "m", patience: 0 });
  const error: unknown = await acquire.then(() => undefined, (cause: unknown) => cause);
  assert.ok(error instanceof SeatkeeperError);
  return error;
}

const WRONG = { title: "wrong", errors: [{ field: "machine_id", message: "is too long" }] };
const ANSWERS: readonly [Reply, RegExp][] = [
  [{ status: 403, body: { type: "/problems/license-full", detail: "All in use." } }, /full: All in use\. Remedy: pass/],
  [{ status: 422, body: { type: "/problems/invalid-request", ...WRONG } }, /wrong \(machine_id is too long\)$/],
  [{ status: 401 }, /^unauthenticated\. Remedy: check the issuer/],
  [{ status: 503 }, /cannot answer now\. Remedy: try again/],
  [{ status: 501 }, /cannot answer now\. Remedy: try again/],
];

for (const [reply, text] of ANSWERS) {
  test(`the error of a ${reply.status} has the id of the request`, async () => {
    const server = await scripted(() => ({ ...reply, requestId: "r-7" }));
    const error = await errorOf(server.url);
    server.close();
    assert.match(error.message, text);
    assert.equal(error.requestId, "r-7");
  });
}

test("an error without an answer has no id of a request", async () => {
  const server = await scripted(() => ({ status: 500 }));
  server.close();
  const error = await errorOf(server.url);
  assert.ok(error instanceof OfflineError);
  assert.match(error.message, /Remedy: check the address/);
  assert.equal(error.requestId, undefined);
});

test("a loss that an answer tells has the id of the request", async () => {
  const server = await scripted(({ target }) =>
    target.endsWith("/heartbeat")
      ? { status: 410, body: { type: "/problems/session-ended", reason: "revoked" }, requestId: "beat" }
      : { status: 201, body: GRANT },
  );
  const client = new Client(server.url, { token: "t", eventStreams: false });
  const seat = await client.license("K").acquire({ machineId: "m" });
  client.wake();
  for await (const state of seat.states()) if (state.kind === "lost") break;
  assert.ok(seat.signal.reason instanceof SeatLostError);
  assert.equal(seat.signal.reason.requestId, "beat");
  assert.throws(() => seat.check(), /revoked\. Remedy: ask the operator/);
  await client.close();
  server.close();
});
