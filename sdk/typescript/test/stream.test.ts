/** Seats with an event stream, against a server of the tests' own. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, type ClientOptions, type Seat, type State } from "../src/index.node.js";
import { SDK } from "../src/version.js";
import { type Arrived, GRANT, type Reply, scripted, type Stream } from "./scripted.js";

const ACQUIRE = "POST /api/v1/licenses/acquire";
const SESSIONS = "/api/v1/licenses/sessions";
const BEAT = `PATCH ${SESSIONS}/${GRANT.session_id}/heartbeat`;
const RELEASE = `DELETE ${SESSIONS}/${GRANT.session_id}`;
const GONE = { type: "/problems/session-ended", title: "gone", reason: "evicted" };
const END = `id: 2-ended\nevent: evicted\ndata: ${JSON.stringify({
  session_id: GRANT.session_id,
  reason: "evicted",
  by: { session_id: "0198a0aa-0000-7000-8000-000000000002" },
})}\n\n`;
/** The stream of a socket of Node.js, and the stream of a `fetch`. */
const WAYS: [string, Partial<ClientOptions>][] = [
  ["socket", {}],
  ["fetch", { fetch }],
];

/** Grants every acquire, renews every heartbeat, takes every release. */
function usual({ target }: Arrived): Reply {
  if (target === ACQUIRE) return { status: 201, body: GRANT };
  return target.startsWith("PATCH") ? { status: 200, body: { expires_in_seconds: 360 } } : { status: 200 };
}

function ignore(): void {
  // The connection stays open without an answer.
}

async function seatOf(url: string | string[], options: Partial<ClientOptions> = {}): Promise<[Client, Seat, State[]]> {
  const client = new Client(url, { token: "t", ...options });
  const states: State[] = [];
  const seat = await client.license("K").acquire({ machineId: "m", onChange: (state) => states.push(state) });
  return [client, seat, states];
}

async function until(condition: () => boolean, milliseconds = 5_000): Promise<void> {
  const end = performance.now() + milliseconds;
  while (!condition()) {
    assert.ok(performance.now() < end, `not within ${milliseconds} ms: ${condition}`);
    await sleep(5);
  }
}

for (const [way, options] of WAYS) {
  test(`${way}: an end is told at once, with its cause`, async () => {
    const reply = (request: Arrived) => (request.target === BEAT ? { status: 410, body: GONE } : usual(request));
    const server = await scripted(reply, (stream) => stream.send("id: 1\n\n: still here\n\n"));
    const [client, seat, states] = await seatOf(server.url, options);
    const stream = await server.stream(0);
    assert.deepEqual(
      [stream.target, stream.token, stream.accept, stream.lastEventId],
      [`GET ${SESSIONS}/${GRANT.session_id}/events`, "t", "text/event-stream", undefined],
    );
    stream.send(END);
    await until(() => seat.signal.aborted, 1_000);
    await until(() => states.at(-1)?.kind === "lost", 1_000);
    assert.deepEqual(
      states.map((state) => state.kind),
      ["active", "lost"],
    );
    assert.equal((states.at(-1) as { by: string }).by, "0198a0aa-0000-7000-8000-000000000002");
    await stream.closed;
    await client.close();
    server.close();
  });

  test(`${way}: a stream that is cut comes back after its last event`, async () => {
    const server = await scripted(usual, (stream) => stream.send("id: 7\n\n"));
    const [client, seat] = await seatOf(server.url, options);
    const first = await server.stream(0);
    await sleep(100);
    first.cut();
    assert.equal((await server.stream(1)).lastEventId, "7");
    seat.check();
    await client.close();
    server.close();
  });

  for (const status of [204, 404]) {
    test(`${way}: a session that ended while its stream was cut is lost within a second of ${status}`, async () => {
      const reply = (request: Arrived) => (request.target === BEAT ? { status: 410, body: GONE } : usual(request));
      const server = await scripted(reply, (stream, earlier) => (earlier === 0 ? stream.cut() : stream.refuse(status)));
      const [client, seat] = await seatOf(server.url, options);
      await server.stream(1);
      await until(() => seat.state.kind === "lost", 1_000);
      assert.deepEqual([server.streams.length, server.arrived(BEAT).length], [2, 1]);
      await client.close();
      server.close();
    });

    test(`${way}: a stream that is answered ${status} asks once, and is not opened again`, async () => {
      const server = await scripted(usual, (stream) => stream.refuse(status));
      const [client, seat, states] = await seatOf(server.url, options);
      await until(() => server.arrived(BEAT).length === 1);
      await sleep(1_500);
      seat.check();
      assert.deepEqual([server.streams.length, server.arrived(BEAT).length, states.length], [1, 1, 1]);
      await client.close();
      server.close();
    });
  }

  test(`${way}: a release closes the stream before its answer`, async () => {
    const reply = (request: Arrived) => ({ ...usual(request), delay: request.target === RELEASE ? 800 : 0 });
    const server = await scripted(reply, (stream) => stream.send(":\n\n"));
    const [client, seat] = await seatOf(server.url, options);
    const stream = await server.stream(0);
    let isReleased = false;
    const release = seat.release().then(() => (isReleased = true));
    await stream.closed;
    assert.ok(!isReleased);
    await release;
    await client.close();
    server.close();
  });

  for (const [what, listen] of [
    ["is never answered", ignore],
    ["breaks off", (stream: Stream) => stream.cut()],
    ["is a page", (stream: Stream) => stream.send("<html>", "text/html")],
    ["is refused with 503", (stream: Stream) => stream.refuse(503)],
    ["is garbage", (stream: Stream) => stream.send("\0\xff: data\ndata: {\n\n")],
  ] as const) {
    test(`${way}: a stream that ${what} changes nothing`, async () => {
      const grant = { ...GRANT, expires_in_seconds: 3 };
      const reply = (request: Arrived) =>
        request.target === ACQUIRE ? { status: 201, body: grant } : { ...usual(request), body: {} };
      const server = await scripted(reply, listen);
      const [client, seat, states] = await seatOf(server.url, options);
      await until(() => server.arrived(BEAT).length === 2);
      seat.check();
      assert.ok(server.streams.length > 0);
      assert.deepEqual(
        states.map((state) => state.kind),
        ["active"],
      );
      await client.close();
      server.close();
    });
  }
}

for (const status of [204, 404]) {
  test(`a stream that is answered ${status} is not asked for again, but the next session's is`, async () => {
    const next = { ...GRANT, session_id: "0198a0aa-0000-7000-8000-000000000002", expires_in_seconds: 3 };
    let streamsBefore = 0;
    const reply = (request: Arrived, earlier: number): Reply => {
      if (request.target === ACQUIRE) streamsBefore = server.streams.length;
      if (request.target === BEAT && earlier === 2) return { status: 404, body: { type: "/problems/session-not-found" } };
      if (request.target === ACQUIRE) return { status: 201, body: earlier === 0 ? { ...GRANT, expires_in_seconds: 3 } : next };
      return { status: 200 };
    };
    const server = await scripted(reply, (stream, earlier) => (earlier === 0 ? stream.refuse(status) : stream.send(":\n\n")));
    const [client] = await seatOf(server.url);
    assert.equal((await server.stream(1)).target, `GET ${SESSIONS}/${next.session_id}/events`);
    assert.deepEqual([server.arrived(ACQUIRE).length, streamsBefore], [2, 1]);
    await client.close();
    server.close();
  });
}

test("a stream that is over stays over when an acquire resumes its session", async () => {
  const unknown = { status: 404, body: { type: "/problems/session-not-found" } };
  const reply = (request: Arrived): Reply => (request.target === BEAT ? unknown : usual(request));
  const server = await scripted(reply, (stream) => stream.refuse(404));
  const [client, seat] = await seatOf(server.url);
  await until(() => server.arrived(ACQUIRE).length === 2 && seat.isValid, 10_000);
  const beats = server.arrived(BEAT).length;
  await sleep(1_500);
  assert.deepEqual([server.streams.length, server.arrived(BEAT).length, seat.sessionId], [1, beats, GRANT.session_id]);
  await client.close();
  server.close();
});

test("a seat that the server ended has no stream while another is acquired", async () => {
  const next = { ...GRANT, session_id: "0198a0aa-0000-7000-8000-000000000002" };
  const reply = (request: Arrived, earlier: number): Reply => {
    if (request.target === BEAT) return { status: 410, body: { ...GONE, reason: "expired" } };
    if (request.target !== ACQUIRE) return { status: 200 };
    return earlier === 0 ? { status: 201, body: { ...GRANT, expires_in_seconds: 3 } } : { status: 201, body: next, delay: 500 };
  };
  const server = await scripted(reply, (stream) => stream.send(":\n\n"));
  const [client, seat] = await seatOf(server.url);
  await (await server.stream(0)).closed;
  assert.equal(seat.state.kind, "reacquiring");
  await server.stream(1);
  seat.check();
  await client.close();
  server.close();
});

test("the streams of many seats print no warning", async () => {
  const warnings: string[] = [];
  const warned = (warning: Error) => warnings.push(warning.message);
  process.on("warning", warned);
  const reply = (request: Arrived, earlier: number): Reply =>
    request.target === ACQUIRE ? { status: 201, body: { ...GRANT, session_id: `s${earlier}` } } : usual(request);
  // Each seat has a stream of its own.
  const server = await scripted(reply, (stream) => (stream.target.includes("?") ? stream.refuse(404) : stream.send(":\n\n")));
  const client = new Client(server.url, { token: "t" });
  await Promise.all([...Array(20).keys()].map((number) => client.license("K").acquire({ machineId: `m${number}` })));
  await server.stream(20);
  await client.close();
  server.close();
  // A warning is told in the next turn.
  await sleep(0);
  process.off("warning", warned);
  assert.deepEqual(warnings, []);
});

test("a client without event streams opens none", async () => {
  const server = await scripted(usual, (stream) => stream.send(":\n\n"));
  const [client] = await seatOf(server.url, { eventStreams: false });
  await sleep(300);
  await client.close();
  assert.equal(server.streams.length, 0);
  server.close();
});

test("a rejected stream waits for the fresh token of the heartbeats", async (t) => {
  // The longest backoff, and heartbeats at the end of their interval.
  t.mock.method(Math, "random", () => 0.999);
  let asked = 0;
  let freshAt = 0;
  const token = () => {
    freshAt = performance.now();
    return `t${(asked += 1)}`;
  };
  let isStale = false;
  const reply = (request: Arrived): Reply => {
    if (request.target === ACQUIRE) return { status: 201, body: { ...GRANT, expires_in_seconds: 6 } };
    return isStale && request.token === "t1" ? { status: 401 } : { status: 200 };
  };
  const server = await scripted(reply, (stream, earlier) => {
    if (earlier === 0) isStale = true;
    if (stream.token === "t1") stream.refuse(401);
    else stream.send(":\n\n");
  });
  const [client, seat] = await seatOf(server.url, { token });
  assert.equal((await server.stream(1)).token, "t2");
  assert.ok(performance.now() - freshAt < 900);
  assert.deepEqual([server.streams.length, asked], [2, 2]);
  seat.check();
  await client.close();
  server.close();
});

test("the stream moves to the server of the heartbeats", async () => {
  const grant = { ...GRANT, expires_in_seconds: 3 };
  const first = await scripted(
    ({ target }) => (target === ACQUIRE ? { status: 201, body: grant } : { status: 503 }),
    (stream) => stream.send("id: 3\n\n"),
  );
  const second = await scripted(
    () => ({ status: 200 }),
    (stream) => stream.send(":\n\n"),
  );
  const [client, seat] = await seatOf([first.url, second.url]);
  const stream = await second.stream(0);
  await (await first.stream(0)).closed;
  assert.equal(stream.lastEventId, "3");
  seat.check();
  assert.deepEqual([first.streams.length, second.streams.length], [1, 1]);
  await client.close();
  first.close();
  second.close();
});

test("bytes on the stream fire the timers that are due", async () => {
  const server = await scripted(
    () => ({ status: 200, body: { ...GRANT, expires_in_seconds: 3 } }),
    (stream) => stream.send(":\n\n"),
  );
  const [client] = await seatOf(server.url);
  const stream = await server.stream(0);
  // Timers of a page may be late by a minute: from here on they never fire.
  const { setTimeout: real } = globalThis;
  globalThis.setTimeout = ((fire: () => void, late: number) => real(fire, late + 60_000)) as typeof setTimeout;
  try {
    // The last timer in time fires within a second.
    await sleep(1_100);
    client.wake();
    await sleep(100);
    const { length } = server.arrived(BEAT);
    for (let beats = 1; beats <= 3; beats += 1) {
      await sleep(1_100);
      assert.equal(server.arrived(BEAT).length, length + beats - 1);
      stream.send(":\n\n");
      await until(() => server.arrived(BEAT).length === length + beats, 1_000);
    }
    await client.close();
  } finally {
    globalThis.setTimeout = real;
  }
  server.close();
});

test("a request that times out gets the connections of a page's streams", async () => {
  const grant = { ...GRANT, expires_in_seconds: 6 };
  const reply = (request: Arrived, earlier: number): Reply =>
    request.target === ACQUIRE ? { status: 201, body: grant } : { status: 200, delay: earlier === 0 ? 3_000 : 0 };
  for (const [way, options] of WAYS) {
    const server = await scripted(reply, (stream) => stream.send(":\n\n"));
    const [client, seat, states] = await seatOf(server.url, options);
    const stream = await server.stream(0);
    let isClosed = false;
    void stream.closed.then(() => (isClosed = true));
    await until(() => server.arrived(BEAT).length === 2);
    if (way === "fetch") await until(() => isClosed);
    else await sleep(200);
    assert.equal(isClosed, way === "fetch", way);
    seat.check();
    assert.ok(!states.some((state) => state.kind === "lost"));
    await client.close();
    server.close();
  }
});

test("a heartbeat tells the idle time once the program told an activity", async () => {
  const grant = { ...GRANT, expires_in_seconds: 3 };
  const server = await scripted(() => ({ status: 200, body: grant }));
  const [client, seat] = await seatOf(server.url);
  await until(() => server.arrived(BEAT).length === 1);
  const told = performance.now();
  seat.activity();
  await until(() => server.arrived(BEAT).length === 4);
  const [first, ...later] = server.arrived(BEAT);
  assert.deepEqual(first!.body, {});
  // A client writes a heartbeat after the server answered the heartbeat before, and before the heartbeat arrives.
  let earliest = told;
  for (const { at, body } of later) {
    const idle = body["idle_seconds"] as number;
    const [least, most] = [Math.floor((earliest - told) / 1_000), Math.floor((at - told) / 1_000)];
    assert.ok(Number.isInteger(idle) && least <= idle && idle <= most, `${least} ≤ ${idle} ≤ ${most}`);
    earliest = at;
  }
  assert.ok(later[2]!.body["idle_seconds"] !== 0);
  await client.close();
  seat.activity();
  server.close();
});

test("an acquire names the program, if the program told its name", async () => {
  const server = await scripted(usual);
  for (const [application, named] of [
    [undefined, undefined],
    [{ name: "cad" }, { name: "cad", sdk: SDK }],
    [{ name: "cad", version: "7.1" }, { name: "cad", version: "7.1", sdk: SDK }],
  ]) {
    const [client] = await seatOf(server.url, application === undefined ? {} : { application } as Partial<ClientOptions>);
    assert.deepEqual(server.arrived(ACQUIRE).at(-1)?.body["client"], named);
    await client.close();
  }
  server.close();
});
