/** The client against servers of the tests' own, with answers that no real server is made to give. */

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, getDefaultAutoSelectFamilyAttemptTimeout, setDefaultAutoSelectFamilyAttemptTimeout } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { inspect, promisify } from "node:util";

import { SECOND } from "../src/core/clocks.js";
import { licenseDoor } from "../src/core/door.js";
import { Driver } from "../src/driver.js";
import { Client, OfflineError, type SeatkeeperError } from "../src/index.node.js";
import { node } from "../src/node-platform.js";
import { failureOf, type NodeTransport } from "../src/node-transport.js";
import { TokenCache } from "../src/tokens.js";
import { GRANT as TERMS, scripted } from "./scripted.js";

const KEY = "CANARY-LICENSE-7f3a91-KEY9";
const TOKEN = "canary.token.5be2c04d";
const CODE = "canary-release-code-9d11e0";
const ACQUIRE = "POST /api/v1/licenses/acquire";
const RELEASE = `DELETE /api/v1/licenses/sessions/${TERMS.session_id}`;
const GRANT = `{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360,"release_code":"${CODE}"}`;

/** Starts a server with one answer to everything; returns its address and a function that ends it. */
async function answering(status: number, body: string): Promise<{ url: string; close: () => void }> {
  const server = createServer((request, answer) => {
    request.resume();
    answer.writeHead(status, { "Content-Type": "application/json" }).end(body);
  });
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as { port: number }).port;
}

/** Acquires and releases a seat, and returns every object and error that a program sees, as logs show them. */
async function seen(url: string): Promise<string> {
  const shown: unknown[] = [];
  const client = new Client(url, { token: TOKEN });
  const license = client.license(KEY);
  shown.push(client, license);
  try {
    const onChange = () => {
      throw new Error("the program's own fault");
    };
    const seat = await license.acquire({ machineId: "m", patience: 0, onChange });
    shown.push(seat, seat.state);
    await seat.release();
    shown.push(seat, seat.signal.reason);
  } catch (error) {
    shown.push(error, (error as Error).stack, String(error));
  }
  await client.close();
  const whole = { depth: Infinity, showHidden: true, getters: true, maxArrayLength: null, maxStringLength: null };
  return shown.map((value) => `${inspect(value)} ${inspect(value, whole)} ${json(value)} ${String(value)}`).join("\n");
}

/** Returns the JSON of the value; a value with a cycle has none. */
function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch (error) {
    return String(error);
  }
}

test("no output shows a license key, a token or a release code", async () => {
  const warnings: string[] = [];
  const note = (warning: Error) => warnings.push(inspect(warning));
  process.on("warning", note);
  let text = "";
  for (const [status, body] of [
    [201, GRANT],
    [401, "{}"],
    [403, '{"type":"/problems/license-full","title":"full"}'],
    [503, "{}"],
  ] as const) {
    const { url, close } = await answering(status, body);
    text += await seen(url);
    close();
  }
  text += await seen("http://127.0.0.1:1");
  await new Promise((resolve) => setTimeout(resolve, 50));
  process.off("warning", note);
  assert.match(warnings.join("\n"), /the program's own fault/);
  text += warnings.join("\n");
  assert.match(text, /license-full/);
  for (const secret of [KEY, TOKEN, "7f3a91", "5be2c04d", "9d11e0"]) assert.ok(!text.includes(secret), `${secret} is shown`);
});

/** Gives token sources 50 ms instead of 30 s. */
function hasten(t: TestContext): void {
  const { timeout } = AbortSignal;
  t.mock.method(AbortSignal, "timeout", (milliseconds: number) => timeout.call(AbortSignal, milliseconds === 30_000 ? 50 : milliseconds));
}

test("a token source that hangs is given up", async (t) => {
  hasten(t);
  const tokens = new TokenCache(() => new Promise<string>(() => undefined));
  const alive = setInterval(() => undefined, 1_000);
  const began = Date.now();
  await assert.rejects(tokens.replace(0), { name: "TimeoutError" });
  assert.ok(Date.now() - began < 10_000);
  clearInterval(alive);
});

test("a token source that hangs in its first call is asked again", async (t) => {
  hasten(t);
  let calls = 0;
  const tokens = new TokenCache(() => (++calls === 1 ? new Promise<string>(() => undefined) : "t"));
  const alive = setInterval(() => undefined, 1_000);
  await assert.rejects(tokens.current(), { name: "TimeoutError" });
  assert.equal(await tokens.current(), "t");
  clearInterval(alive);
});

test("a token source that throws at once leaves no promise behind", async (t) => {
  hasten(t);
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", note);
  t.after(() => process.off("unhandledRejection", note));
  const tokens = new TokenCache(() => { throw new Error("the program's own fault"); });
  await assert.rejects(tokens.current(), { message: "the program's own fault" });
  await sleep(100);
  assert.deepEqual(unhandled, []);
});

test("a token that comes after the end of its acquire sends nothing", async (t) => {
  const server = await scripted(() => ({ status: 201, body: TERMS }));
  t.after(server.close);
  let give!: (token: string) => void;
  const token = () => new Promise<string>((resolve) => (give = resolve));
  // A `fetch` of the program may take no notice of its signal.
  const send: typeof fetch = (url, { signal: _, ...options } = {}) => fetch(url, options);
  const client = new Client(server.url, { token, fetch: send, eventStreams: false });
  const abort = new AbortController();
  const acquire = client.license("K").acquire({ machineId: "m", signal: abort.signal });
  await sleep(10);
  abort.abort(new Error("enough"));
  await assert.rejects(acquire, /enough/);
  // The release gives the request up.
  await client.close();
  give("t");
  await sleep(300);
  assert.deepEqual(server.arrived(), []);
});

test("a token that does not come in the time of a request is no silence of the server", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let now = 0;
  const clock = () => ({ mono: now, boot: now });
  const tokens = new TokenCache(() => new Promise<string>(() => undefined));
  const driver = new Driver(node, clock, {} as unknown as NodeTransport, tokens, false);
  const hold = driver.start({ door: licenseDoor("K", { machineId: "m" }), wait: 0, patience: 0 });
  now += 10 * SECOND;
  t.mock.timers.tick(10_000);
  await turn();
  assert.deepEqual({ ...hold.state, requestId: undefined }, { kind: "refused", code: "offline", failure: "no-token", requestId: undefined });
});

/** The targets of the requests of one seat that is acquired twice: the first acquire is given up, and its seat given back. */
const GIVEN_UP = [ACQUIRE, RELEASE, ACQUIRE];

test("an acquire after one that was given up waits for the release, and keeps its seat", async (t) => {
  const server = await scripted((_, earlier) => ({ status: 201, body: TERMS, delay: earlier === 0 ? 300 : 0 }));
  t.after(server.close);
  await using client = new Client(server.url, { token: "t", eventStreams: false });
  const hold = (signal?: AbortSignal) => client.license("K").acquire({ machineId: "m", ...(signal && { signal }) });
  const abort = new AbortController();
  setTimeout(() => abort.abort(new Error("enough")), 50);
  await assert.rejects(hold(abort.signal), /enough/);
  const began = performance.now();
  const other = await client.license("K").acquire({ machineId: "other" });
  assert.ok(performance.now() - began < 200, "an acquire of another holder does not wait");
  const next = new AbortController();
  setTimeout(() => next.abort(new Error("enough of this, too")), 20);
  await assert.rejects(hold(next.signal), /enough of this, too/);
  await assert.rejects(hold(AbortSignal.abort(new Error("not at all"))), /not at all/);
  assert.ok(performance.now() - began < 200, "an aborted acquire does not wait");
  const seat = await hold();
  await sleep(200);
  assert.deepEqual(server.arrived().filter(({ body }) => body["machine_id"] !== "other").map(({ target }) => target), GIVEN_UP);
  seat.check();
  other.leave();
});

test("an acquire after one without an answer waits for the release, and keeps its seat", async (t) => {
  const server = await scripted(({ target }, earlier) => ({ status: target === ACQUIRE && earlier === 0 ? 503 : 201, body: TERMS, delay: 100 }));
  t.after(server.close);
  await using client = new Client(server.url, { token: "t", eventStreams: false });
  const hold = () => client.license("K").acquire({ machineId: "m", patience: 0 });
  await assert.rejects(hold(), { code: "offline" });
  const seat = await hold();
  await sleep(300);
  assert.deepEqual(server.arrived().map(({ target }) => target), [ACQUIRE, ...GIVEN_UP]);
  seat.check();
});

test("a client that is closed sends no acquire that waits for a release", async (t) => {
  const server = await scripted(() => ({ status: 201, body: TERMS, delay: 100 }));
  t.after(server.close);
  const client = new Client(server.url, { token: "t", eventStreams: false });
  const hold = () => client.license("K").acquire({ machineId: "m" });
  const seat = await hold();
  void seat.release();
  const refused = assert.rejects(hold(), { code: "closed" });
  await client.close();
  await refused;
  assert.deepEqual(server.arrived().map(({ target }) => target), [ACQUIRE, RELEASE]);
});

test("the cause of a failure outlives the release of an acquire without an answer", async (t) => {
  const breaking = createTcpServer((socket) => socket.once("data", () => socket.destroy())).listen(0, "127.0.0.1");
  t.after(() => breaking.close());
  await once(breaking, "listening");
  await using client = new Client(`http://127.0.0.1:${(breaking.address() as { port: number }).port}`, { token: "t" });
  await assert.rejects(client.license("K").acquire({ machineId: "m", patience: 0 }), (error: OfflineError) => {
    assert.equal((error.cause as { code?: string } | undefined)?.code, "ECONNRESET");
    return error.failure === "reset-after-send";
  });
});

test("a callback that throws a value without a text costs no program", async (t) => {
  const server = await scripted(() => ({ status: 201, body: TERMS }));
  t.after(server.close);
  const faults: unknown[] = [];
  const note = (fault: unknown) => faults.push(fault);
  process.on("unhandledRejection", note);
  t.after(() => process.off("unhandledRejection", note));
  const warned = once(process, "warning");
  await using client = new Client(server.url, { token: "t", eventStreams: false });
  const onChange = () => {
    throw Object.create(null);
  };
  await client.license("K").acquire({ machineId: "m", onChange });
  await Promise.race([warned, sleep(1_000)]);
  assert.deepEqual(faults, []);
});

test("a failure whose cause is hidden may have reached the server", () => {
  const failed = (code?: string) => new TypeError("fetch failed", { cause: Object.assign(new Error(), { code }) });
  assert.equal(failureOf(new TypeError("Failed to fetch")), "reset-after-send");
  assert.equal(failureOf(failed()), "reset-after-send");
  assert.equal(failureOf(failed("ECONNRESET")), "reset-after-send");
  assert.equal(failureOf(failed("ECONNREFUSED")), "refused");
  assert.equal(failureOf(failed("ENOTFOUND")), "refused");
  assert.equal(failureOf(failed("UND_ERR_CONNECT_TIMEOUT")), "refused");
  assert.equal(failureOf(failed("ERR_SSL_WRONG_VERSION_NUMBER")), "refused");
  assert.equal(failureOf(failed("CERT_HAS_EXPIRED")), "certificate");
  assert.equal(failureOf(failed("ERR_TLS_CERT_ALTNAME_INVALID")), "certificate");
  assert.equal(failureOf(failed("HPE_INVALID_CONSTANT")), "garbage");
});

test("an error of a call before the request is sent is a refused connection", () => {
  const error = (syscall: string, code: string) => Object.assign(new Error(code), { syscall, code });
  const addresses = (...errors: Error[]) => Object.assign(new AggregateError(errors), { code: "ETIMEDOUT" });
  const [cut, away] = [error("connect", "ETIMEDOUT"), error("connect", "ENETUNREACH")];
  for (const unsent of [cut, error("connect", "EACCES"), error("getaddrinfo", "EAI_FAIL"), addresses(cut, away)]) {
    assert.equal(failureOf(unsent), "refused", unsent.message);
    assert.equal(failureOf(new TypeError("fetch failed", { cause: unsent })), "refused", unsent.message);
  }
  for (const sent of [error("read", "ETIMEDOUT"), addresses(cut, error("read", "ECONNRESET")), addresses(), null, undefined, "no", {}]) {
    assert.equal(failureOf(sent), "reset-after-send", String(sent));
  }
});

test("a server with several addresses has the time of a slow link for each", async (t) => {
  const server = await scripted(() => ({ status: 201, body: TERMS }), (stream) => stream.send(":\n\n"));
  t.after(server.close);
  const connect = Agent.prototype.createConnection;
  const times: unknown[] = [];
  t.mock.method(Agent.prototype, "createConnection", function (this: Agent, ...parameters: Parameters<typeof connect>) {
    times.push((parameters[0] as { autoSelectFamilyAttemptTimeout?: number }).autoSelectFamilyAttemptTimeout);
    return connect.apply(this, parameters);
  });
  const take = async () => {
    await using client = new Client(server.url, { token: "t" });
    await client.license("K").acquire({ machineId: "m" });
    await server.stream(server.streams.length);
  };
  await take();
  const before = getDefaultAutoSelectFamilyAttemptTimeout();
  t.after(() => setDefaultAutoSelectFamilyAttemptTimeout(before));
  setDefaultAutoSelectFamilyAttemptTimeout(5_000);
  await take();
  assert.deepEqual(new Set(times), new Set([600, 5_000]));
});

test("a certificate of an unknown authority is named", { skip: !hasOpenssl() }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "seatkeeper-sdk-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1";
  const names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert];
  execFileSync("openssl", [...command.split(" "), ...names], { stdio: "ignore" });
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) });
  const port = await listen(server);
  await using client = new Client(`https://127.0.0.1:${port}`, { token: "t" });
  await assert.rejects(client.license("K").acquire({ machineId: "m", patience: 0 }), (error: unknown) => {
    assert.ok(error instanceof OfflineError);
    assert.equal(error.failure, "certificate");
    return /certificate was not accepted/.test(error.message);
  });
  server.close();
  rmSync(folder, { recursive: true });
});

test("a program that watches its seat in the background ends, and gives the seat back", async (t) => {
  const server = await scripted(() => ({ status: 201, body: TERMS }));
  t.after(server.close);
  const program = `
    import { Client } from ${JSON.stringify(new URL("../src/index.node.js", import.meta.url).href)};
    const client = new Client(${JSON.stringify(server.url)}, { token: "t" });
    const seat = await client.license("K").acquire({ machineId: "m" });
    void (async () => { for await (const state of seat.states()) console.log(state.kind); })();
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], { timeout: 20_000 });
  assert.deepEqual(stdout.trim().split("\n"), ["active", "released"]);
  assert.equal(server.arrived("DELETE").length, 1);
});

test("a release by a listener of the signal comes after the loss", async (t) => {
  const ended = { type: "x/session-ended", title: "t", reason: "revoked" };
  const server = await scripted(({ target }) =>
    target.startsWith("PATCH") ? { status: 410, body: ended } : { status: 201, body: { ...TERMS, heartbeat_interval_seconds: 1 } },
  );
  t.after(server.close);
  await using client = new Client(server.url, { token: "t", eventStreams: false });
  const seat = await client.license("K").acquire({ machineId: "m" });
  seat.signal.addEventListener("abort", () => void seat.release());
  const told: string[] = [];
  const alive = setInterval(() => undefined, 1_000);
  client.wake();
  for await (const { kind } of seat.states()) told.push(kind);
  clearInterval(alive);
  assert.equal(told.at(-1), "lost");
  assert.equal(seat.state.kind, "released");
});

test("a client without a seat leaves nothing with the process", async (t) => {
  const server = await scripted(() => ({ status: 201, body: TERMS }));
  t.after(server.close);
  const listeners = () => process.listenerCount("beforeExit");
  const before = listeners();
  const clients = Array.from({ length: 11 }, () => new Client(server.url, { token: "t", eventStreams: false }));
  assert.equal(listeners(), before);
  const seats = await Promise.all(clients.map((client) => client.license("K").acquire({ machineId: "m" })));
  assert.equal(listeners(), before + 1);
  await Promise.all(seats.map((seat) => seat.release()));
  assert.equal(listeners(), before);
});

test("metadata without JSON are misuse, and later changes of the object are not sent", async (t) => {
  const server = await scripted(() => ({ status: 201, body: TERMS }));
  t.after(server.close);
  await using client = new Client(server.url, { token: async () => sleep(50, "t"), eventStreams: false });
  const license = client.license("K");
  await assert.rejects(license.acquire({ machineId: "m", metadata: { n: 1n } }), { code: "misuse" });
  const metadata = { job: "first" };
  const seat = license.acquire({ machineId: "m", metadata });
  metadata.job = "second";
  await seat;
  assert.deepEqual(server.arrived("POST")[0]?.body["metadata"], { job: "first" });
});

test("the error of an address shows no password", () => {
  for (const url of ["https://user:hunter2@host", "https://:hunter2@host", "https://user:hunter2@ho st", "user:hunter2@host"]) {
    assert.throws(() => new Client(url, { token: "t" }), ({ code, message }: SeatkeeperError) => {
      assert.equal(code, "misuse");
      return !message.includes("hunter2");
    });
  }
});

function hasOpenssl(): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
