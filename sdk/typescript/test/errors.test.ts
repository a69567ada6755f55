/** Errors in the hands of support: ids of requests and remedies. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";

import { Client, OfflineError, SeatkeeperError, SeatLostError, type TokenSource } from "../src/index.node.js";
import { GRANT, type Reply, scripted } from "./scripted.js";

async function errorOf(url: string, token: TokenSource = "t", send?: typeof fetch): Promise<SeatkeeperError> {
  const acquire = new Client(url, { token, ...(send && { fetch: send }) }).license("K").acquire({ machineId: "m", patience: 0 });
  const error: unknown = await acquire.then(() => undefined, (cause: unknown) => cause);
  assert.ok(error instanceof SeatkeeperError);
  return error;
}

const WRONG = { title: "wrong", errors: [{ field: "machine_id", message: "is too long" }] };
const ANSWERS: readonly [Reply, RegExp][] = [
  [{ status: 403, body: { type: "/problems/license-full", detail: "All in use." } }, /full: All in use\. Remedy: pass/],
  [{ status: 422, body: { type: "/problems/invalid-request", ...WRONG } }, /wrong \(machine_id is too long\)$/],
  [{ status: 404, body: { type: "/problems/not-found" } }, /^not-found\. Remedy: correct the path/],
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

test("an error without an answer has the error of the network as its cause", async () => {
  const server = await scripted(() => ({ status: 500 }));
  server.close();
  const { cause } = (await errorOf(server.url)) as { cause?: { code?: string; syscall?: string } };
  assert.deepEqual([cause?.code, cause?.syscall], ["ECONNREFUSED", "connect"]);
});

test("a host name without an address is named", async () => {
  for (const send of [undefined, fetch]) {
    const error = (await errorOf("http://seats.invalid:8080", "t", send)) as OfflineError;
    assert.equal(error.failure, "refused");
    assert.match(error.message, /^the server cannot be reached: the host name has no address\. Remedy: check the host name/);
  }
});

test("an error of the token source is the cause, at the first token and at a later one", async (t) => {
  const server = await scripted(() => ({ status: 401 }));
  t.after(server.close);
  const fault = new Error("the identity provider is away");
  const none = () => Promise.reject(fault);
  const first = await errorOf(server.url, none);
  assert.deepEqual([(first as OfflineError).failure, first.cause], ["no-token", fault]);
  let calls = 0;
  const later = await errorOf(server.url, () => (++calls === 1 ? "t" : none()));
  assert.deepEqual([(later as OfflineError).failure, later.cause], ["no-token", fault]);
  const spaces = await errorOf(server.url, "no token");
  assert.match(String(spaces.cause), /no bearer token/);
});

test("a failure after an answer has no cause of an earlier try", async (t) => {
  const server = await scripted(() => ({ status: 503 }));
  t.after(server.close);
  let tries = 0;
  const send: typeof fetch = (...request) => (++tries === 1 ? Promise.reject(new Error("first")) : fetch(...request));
  const acquire = new Client(server.url, { token: "t", fetch: send }).license("K").acquire({ machineId: "m", patience: 1.5 });
  await assert.rejects(acquire, (error: Error) => error instanceof OfflineError && tries > 1 && !("cause" in error));
});

test("an acquire from a server that never answers ends soon after its patience", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const began = performance.now();
  const acquire = new Client(url, { token: "t" }).license("K").acquire({ machineId: "m", patience: 1 });
  await assert.rejects(acquire, (error) => error instanceof OfflineError && error.failure === "timeout");
  const seconds = (performance.now() - began) / 1_000;
  assert.ok(seconds >= 1 && seconds < 8, `${seconds} s`);
});

test("an answer that is not HTTP leaves no byte in the error", async (t) => {
  const server = createServer((socket) => {
    const head = "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n";
    socket.once("data", () => socket.end(`${head}2\r\n{}\r\nrelease_code-9d11e0`));
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const error = (await errorOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)) as OfflineError;
  assert.equal(error.failure, "garbage");
  assert.equal(error.cause, undefined);
});

test("an error is told although the program formats stacks by itself", async (t) => {
  const server = await scripted(() => ({ status: 403, body: { type: "/problems/license-full" } }));
  t.after(server.close);
  const { prepareStackTrace } = Error;
  t.after(() => (Error.prepareStackTrace = prepareStackTrace as NonNullable<typeof prepareStackTrace>));
  Error.prepareStackTrace = (_, calls) => calls;
  assert.equal((await errorOf(server.url)).code, "license-full");
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
