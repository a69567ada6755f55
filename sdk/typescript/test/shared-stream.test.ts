/** The event stream of several seats, with a clock and connections of the tests' own. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";

import { type Micros, NEVER, SECOND } from "../src/core/clocks.js";
import { deviceDoor } from "../src/core/door.js";
import type { Follower } from "../src/event-stream.js";
import { Subscription } from "../src/shared-stream.js";
import { type Connection, DOOR, StreamDesk } from "./connections.js";

const SESSIONS = "/api/v1/licenses/sessions";
const DEVICE = deviceDoor({ deviceId: "d", deviceType: "tv" }, undefined, undefined);

/** A seat with its part of a stream. */
class Seat implements Follower {
  readonly ends: [string | undefined, string | undefined][] = [];
  stream: Subscription;
  /** The deadline of the seat, which a heartbeat that is answered as live moves. */
  until: Micros;

  constructor(
    private readonly desk: Desk,
    readonly session: string,
    private readonly door = DOOR,
  ) {
    this.until = desk.boot + 360 * SECOND;
    this.stream = this.follow();
  }

  get state() {
    return { kind: "active", until: this.until } as const;
  }

  /** Follows the session anew, as a seat does that acquires its session again. */
  follow(): Subscription {
    this.stream = new Subscription(this.session, this, this.desk, this.door);
    this.stream.tick(this.desk.boot);
    return this.stream;
  }

  ended(reason?: string, by?: string): void {
    this.ends.push([reason, by]);
  }
}

/** Seats of one driver. */
class Desk extends StreamDesk {
  readonly seats: Seat[] = [];

  seat(session: string, door = DOOR): Seat {
    const seat = new Seat(this, session, door);
    this.seats.push(seat);
    return seat;
  }

  async advance(seconds: number): Promise<void> {
    this.boot += seconds * SECOND;
    for (const { stream } of this.seats) stream.tick(this.boot);
    await turn();
  }

  /** Opens the stream of the seats that joined; returns its connection, which the server answered. */
  async opened(status = 200): Promise<Connection> {
    const { length } = this.connections;
    await this.advance(0.1);
    assert.equal(this.connections.length, length + 1, "one connection");
    const connection = this.connections.at(-1)!;
    await connection.answer(status);
    return connection;
  }

  get paths(): string[] {
    return this.connections.map(({ path }) => path.replace(`${SESSIONS}/`, ""));
  }

  get open(): string[] {
    return this.paths.filter((_, number) => !this.connections[number]!.isClosed);
  }
}

function end(session: string, reason = "revoked"): string {
  return `event: ${reason}\ndata: ${JSON.stringify({ session_id: session, reason, by: { device_name: "Sofa" } })}\n\n`;
}

function unknown(session: string): string {
  return `event: unknown\ndata: ${JSON.stringify({ session_id: session })}\n\n`;
}

test("shared stream: seats that join within 100 ms are one request", async () => {
  const desk = new Desk();
  desk.seat("a");
  await desk.advance(0.06);
  desk.seat("b");
  await desk.advance(0.03);
  desk.seat("c");
  assert.deepEqual(desk.paths, []);
  assert.equal(desk.seats[2]!.stream.wakeAt - desk.boot, 0.01 * SECOND);
  await desk.advance(0.01);
  assert.deepEqual(desk.paths, ["a/events?with=b,c"]);
  await desk.advance(1);
  assert.equal(desk.connections.length, 1);
});

test("shared stream: a seat alone has the plain stream, with the id of the last event", async () => {
  const desk = new Desk();
  const seat = desk.seat("a");
  const first = await desk.opened();
  await first.send(`id: 7\n${end("a")}`);
  await first.send(undefined);
  await desk.advance(1);
  assert.deepEqual(desk.paths, ["a/events", "a/events"]);
  assert.deepEqual([first.lastEventId, desk.connections[1]!.lastEventId], [undefined, "7"]);
  assert.deepEqual(seat.ends, [["revoked", "Sofa"]]);
});

test("shared stream: a join opens the stream anew, and the connection stays open meanwhile", async () => {
  const desk = new Desk();
  const seat = desk.seat("a");
  const first = await desk.opened();
  await first.send("id: 7\n\n");
  desk.seat("b");
  await desk.advance(0.09);
  desk.seat("c");
  await first.send(end("a"));
  assert.deepEqual([seat.ends.length, first.isClosed], [1, false]);
  await desk.advance(0.01);
  assert.ok(first.isClosed);
  assert.deepEqual(desk.paths, ["a/events", "a/events?with=b,c"]);
  // The id belongs to a stream of another list.
  assert.equal(desk.connections[1]!.lastEventId, undefined);
});

test("shared stream: a join does not cut a request without an answer, and the stream is opened anew after the answer", async () => {
  const desk = new Desk();
  desk.seat("a");
  await desk.advance(0.1);
  desk.seat("b");
  await desk.advance(10);
  desk.seat("c");
  await desk.advance(10);
  assert.deepEqual(desk.open, ["a/events"]);
  const { arrivals } = desk;
  await desk.connections[0]!.answer(200);
  // No byte has come, and the timer of the driver knows of the pause.
  assert.equal(desk.arrivals, arrivals + 1);
  assert.equal(desk.seats[0]!.stream.wakeAt - desk.boot, 0.1 * SECOND);
  await desk.opened();
  assert.deepEqual(desk.open, ["a/events?with=b,c"]);
});

test("shared stream: a request that fails before its answer is followed by one that names the seats that joined", async () => {
  const desk = new Desk();
  desk.random = 1;
  desk.seat("a");
  await desk.advance(0.1);
  desk.seat("b");
  await desk.connections[0]!.fail();
  await desk.advance(0.9);
  assert.deepEqual(desk.paths, ["a/events"]);
  await desk.opened();
  assert.deepEqual(desk.open, ["a/events?with=b"]);
});

test("shared stream: steady joins double the pause up to 1.6 s, and a join after 2 s begins anew", async () => {
  const desk = new Desk();
  desk.seat("first");
  await desk.opened();
  let count = 0;
  const join = () => desk.seat(`${(count += 1)}`);
  for (const pause of [0.1, 0.2, 0.4, 0.8, 1.6, 1.6]) {
    join();
    const { length } = desk.connections;
    await desk.advance(pause / 2);
    join();
    assert.equal(desk.seats[0]!.stream.wakeAt - desk.boot, (pause / 2) * SECOND);
    await desk.advance(pause / 2);
    assert.equal(desk.connections.length, length + 1, `${pause} s`);
    await desk.connections.at(-1)!.answer(200);
    await desk.advance(0.3);
  }
  await desk.advance(1.7);
  join();
  await desk.opened();
});

test("shared stream: a seat that has left again within the pause costs no request", async () => {
  const desk = new Desk();
  desk.seat("a");
  const connection = await desk.opened();
  desk.seat("b").stream.close();
  await desk.advance(1);
  assert.deepEqual([desk.paths, connection.isClosed], [["a/events"], false]);
  // The next pause is not longer for it.
  desk.seat("c");
  await desk.opened();
  assert.deepEqual(desk.open, ["a/events?with=c"]);
});

test("shared stream: a join does not shorten a backoff", async () => {
  const desk = new Desk();
  desk.random = 1;
  desk.seat("a");
  for (const pause of [1, 2, 4]) {
    await desk.opened(503);
    await desk.advance(pause - 0.1);
  }
  await desk.opened(503);
  desk.seat("b");
  assert.equal(desk.seats[0]!.stream.wakeAt - desk.boot, 8 * SECOND);
  await desk.advance(7.9);
  assert.equal(desk.connections.length, 4);
  await desk.opened(503);
  assert.equal(desk.paths[4], "a/events?with=b");
  assert.equal(desk.seats[0]!.stream.wakeAt - desk.boot, 16 * SECOND);
});

test("shared stream: a join after 401 sends nothing before there is another token", async () => {
  const desk = new Desk();
  desk.random = 1;
  desk.seat("a");
  await desk.opened(401);
  desk.seat("b");
  await desk.advance(0.9);
  desk.bearer.token = "t2";
  await desk.advance(0.05);
  assert.equal(desk.connections.length, 1);
  await desk.opened();
  assert.deepEqual([desk.open, desk.connections[1]!.token], [["a/events?with=b"], "t2"]);
});

for (const [life, backoff] of [
  [59, 4],
  [60, 1],
] as const) {
  test(`shared stream: after ${life} s with two reopenings for joins the backoff is ${backoff} s`, async () => {
    const desk = new Desk();
    desk.random = 1;
    desk.seat("a");
    for (const pause of [1, 2]) {
      await desk.opened(503);
      await desk.advance(pause - 0.1);
    }
    await desk.opened();
    for (let seconds = 0; seconds < life; seconds += 1) {
      if (seconds % 25 === 24) {
        desk.seat(`at ${seconds}`);
        await desk.opened();
        await desk.advance(0.9);
      } else await desk.advance(1);
      await desk.connections.at(-1)!.send(":\n\n");
    }
    assert.equal(desk.connections.length, 5);
    await desk.connections.at(-1)!.send(undefined);
    assert.equal(desk.seats[0]!.stream.wakeAt - desk.boot, backoff * SECOND);
  });
}

test("shared stream: the life before a break does not start a later backoff anew", async () => {
  const desk = new Desk();
  desk.random = 1;
  desk.seat("a");
  const connection = await desk.opened();
  for (let seconds = 0; seconds < 60; seconds += 1) {
    await desk.advance(1);
    await connection.send(":\n\n");
  }
  await connection.send(undefined);
  await desk.advance(0.9);
  await (await desk.opened()).send(undefined);
  assert.equal(desk.seats[0]!.stream.wakeAt - desk.boot, 2 * SECOND);
});

test("shared stream: an end that is told again is ignored until a heartbeat is answered as live", async () => {
  const desk = new Desk();
  const [a, b] = ["a", "b"].map((session) => desk.seat(session));
  await (await desk.opened()).send(end("a") + end("a", "evicted"));
  desk.seat("c");
  await (await desk.opened()).send(end("a"));
  assert.deepEqual([a!.ends, b!.ends], [[["revoked", "Sofa"]], []]);
  a!.until += 10 * SECOND;
  await desk.connections[1]!.send(end("a", "evicted") + end("a", "evicted"));
  assert.deepEqual(a!.ends, [["revoked", "Sofa"], ["evicted", "Sofa"]]);
  // Also a stream of its own tells the end again.
  await desk.connections[1]!.send(unknown("a"));
  await desk.connections[2]!.answer(200);
  await desk.connections[2]!.send(end("a"));
  assert.equal(a!.ends.length, 2);
});

test("shared stream: an end reaches the seats of its session", async () => {
  const desk = new Desk();
  const [a, b, again, c] = ["a", "b", "b", "c"].map((session) => desk.seat(session));
  const connection = await desk.opened();
  await connection.send(`: still here\n\nevent: later\ndata: {"session_id":"a"}\n\n${end("x")}${end("b", "evicted")}`);
  assert.deepEqual([a!.ends, b!.ends, again!.ends, c!.ends], [[], [["evicted", "Sofa"]], [["evicted", "Sofa"]], []]);
  assert.deepEqual([desk.paths, desk.arrivals], [["a/events?with=b,c"], 1]);
});

test("shared stream: a leave closes nothing, and the last leave closes", async () => {
  const desk = new Desk();
  const [a, b, c] = ["a", "b", "c"].map((session) => desk.seat(session));
  const connection = await desk.opened();
  a!.stream.close();
  await connection.send(end("a") + unknown("a"));
  await desk.advance(1);
  assert.deepEqual([desk.open, a!.ends, a!.stream.wakeAt], [["a/events?with=b,c"], [], NEVER]);
  // The next request names the seats that are left.
  await connection.send(undefined);
  await desk.advance(1);
  assert.deepEqual(desk.open, ["b/events?with=c"]);
  b!.stream.close();
  await desk.connections[1]!.answer(200);
  await desk.connections[1]!.send(undefined);
  await desk.advance(1);
  assert.deepEqual(desk.open, ["c/events"]);
  c!.stream.close();
  await desk.advance(86_400);
  assert.deepEqual([desk.open, desk.connections.length], [[], 3]);
});

test("shared stream: a seat that is left alone does not send the id of another session's event", async () => {
  const desk = new Desk();
  const a = desk.seat("a");
  await (await desk.opened()).send("id: 7\n\n");
  desk.seat("b");
  await desk.advance(0.05);
  a.stream.close();
  await desk.opened(503);
  await desk.advance(1);
  assert.deepEqual(desk.paths, ["a/events", "b/events", "b/events"]);
  assert.deepEqual(desk.connections.map(({ lastEventId }) => lastEventId), [undefined, undefined, undefined]);
});

test("shared stream: a companion that is unknown gets a stream of its own at once, which no seat joins", async () => {
  const desk = new Desk();
  const [a, b, c] = ["a", "b", "c"].map((session) => desk.seat(session));
  const shared = await desk.opened();
  await shared.send(unknown("b"));
  assert.deepEqual(desk.open, ["a/events?with=b,c", "b/events"]);
  desk.seat("d");
  await desk.opened();
  assert.deepEqual(desk.open, ["b/events", "a/events?with=c,d"]);
  await desk.connections[1]!.answer(200);
  await desk.connections[1]!.send(end("b"));
  assert.deepEqual([a!.ends, b!.ends, c!.ends], [[], [["revoked", "Sofa"]], []]);
});

test("shared stream: a session that got a stream of its own never shares again", async () => {
  const desk = new Desk();
  const [, b] = ["a", "b"].map((session) => desk.seat(session));
  await (await desk.opened()).send(unknown("b"));
  b!.stream.close();
  assert.deepEqual(desk.open, ["a/events?with=b"]);
  b!.follow();
  await turn();
  assert.deepEqual(desk.open, ["a/events?with=b", "b/events"]);
});

test("shared stream: the first session that is unknown gets a stream of its own, whose 404 is final", async () => {
  const desk = new Desk();
  const [a, b] = ["a", "b"].map((session) => desk.seat(session));
  const connection = await desk.opened();
  await connection.send(unknown("a") + unknown("a"));
  await connection.send(end("b"));
  assert.deepEqual(desk.open, ["a/events?with=b", "a/events"]);
  assert.deepEqual([a!.ends, b!.ends], [[], [["revoked", "Sofa"]]]);
  await desk.connections[1]!.answer(404);
  assert.deepEqual([a!.ends, a!.stream.wakeAt], [[[undefined, undefined]], NEVER]);
  await connection.send(undefined);
  await desk.advance(1);
  assert.deepEqual(desk.open, ["b/events"]);
});

test("shared stream: a stream of one session ignores that the session is unknown", async () => {
  const desk = new Desk();
  const seat = desk.seat("a");
  const connection = await desk.opened();
  await connection.send(unknown("a"));
  assert.deepEqual([desk.open, desk.connections.length, seat.ends], [["a/events"], 1, []]);
});

for (const status of [204, 400, 404, 422]) {
  test(`shared stream: after ${status} each session has a stream of its own`, async () => {
    const desk = new Desk();
    const [a, b] = ["a", "b"].map((session) => desk.seat(session));
    const shared = await desk.opened(status);
    assert.deepEqual([shared.isClosed, desk.open], [true, ["a/events", "b/events"]]);
    // The answers to the plain streams are as ever.
    await desk.connections[1]!.answer(404);
    await desk.connections[2]!.answer(200);
    assert.deepEqual([a!.ends, b!.ends, desk.open], [[[undefined, undefined]], [], ["b/events"]]);
    desk.seat("c");
    await desk.opened();
    assert.deepEqual(desk.open, ["b/events", "c/events"]);
  });
}

test("shared stream: a seat that joins while the server refuses the others has the stream", async () => {
  const desk = new Desk();
  for (const session of ["a", "b"]) desk.seat(session);
  await desk.advance(0.1);
  desk.seat("c");
  await desk.connections[0]!.answer(404);
  await desk.advance(0.4);
  await desk.opened();
  assert.deepEqual(desk.open, ["a/events", "b/events", "c/events"]);
});

for (const status of [0, 401, 429, 503]) {
  test(`shared stream: after ${status} the whole list is asked again`, async () => {
    const desk = new Desk();
    for (const session of ["a", "b"]) desk.seat(session);
    await desk.opened(status);
    desk.bearer.token = "t2";
    await desk.advance(1);
    assert.deepEqual(desk.paths, ["a/events?with=b", "a/events?with=b"]);
    assert.equal(desk.connections[1]!.token, "t2");
  });
}

test("shared stream: 45 s without a byte are a dead connection", async () => {
  const desk = new Desk();
  for (const session of ["a", "b"]) desk.seat(session);
  const connection = await desk.opened();
  await desk.advance(44.9);
  assert.ok(!connection.isClosed);
  await desk.advance(0.1);
  assert.ok(connection.isClosed);
  await desk.advance(1);
  assert.deepEqual(desk.open, ["a/events?with=b"]);
});

test("shared stream: a fresh token opens the stream once, though every seat reports the token", async () => {
  const desk = new Desk();
  const seats = ["a", "b", "c"].map((session) => desk.seat(session));
  await desk.opened(401);
  Object.assign(desk.bearer, { token: "t2", generation: 1 });
  for (const { stream } of seats) {
    stream.reconnect();
    await turn();
  }
  assert.deepEqual(desk.connections.map(({ token }) => token), ["t1", "t2"]);
  assert.deepEqual(desk.open, ["a/events?with=b,c"]);
});

test("shared stream: a fresh token does not cut the pause short", async () => {
  const desk = new Desk();
  const seat = desk.seat("a");
  desk.bearer.generation = 1;
  seat.stream.reconnect();
  await turn();
  assert.deepEqual(desk.paths, []);
  await desk.opened();
});

test("shared stream: the connection that is given to requests comes back for every seat", async () => {
  const desk = new Desk();
  desk.random = 1;
  const seats = ["a", "b"].map((session) => desk.seat(session));
  const connection = await desk.opened();
  for (const { stream } of seats) stream.yieldConnection();
  assert.ok(connection.isClosed);
  await desk.advance(59.9);
  assert.equal(desk.connections.length, 1);
  await desk.advance(0.1);
  assert.deepEqual(desk.open, ["a/events?with=b"]);
});

test("shared stream: 101 seats have two streams, and a free place is taken first", async () => {
  const desk = new Desk();
  for (let number = 0; number <= 100; number += 1) desk.seat(`${number}`);
  await desk.advance(0.1);
  assert.deepEqual(desk.open.map((path) => path.split(",").length), [99, 1]);
  assert.equal(desk.open[1], "100/events");
  await desk.connections[0]!.answer(200);
  desk.seats[3]!.stream.close();
  desk.seat("late");
  await desk.advance(0.1);
  assert.deepEqual([desk.open.length, desk.open[0]], [2, "100/events"]);
  assert.match(desk.open[1]!, /^0\/events\?with=1,2,4,.*,99,late$/);
});

test("shared stream: seats with other tokens, and seats of another API, share no stream", async () => {
  const [desk, other] = [new Desk(), new Desk()];
  desk.seat("a");
  desk.seat("d", DEVICE);
  other.seat("b");
  await desk.advance(0.1);
  await other.advance(0.1);
  assert.deepEqual(desk.open, ["a/events", "/api/v1/devices/sessions/d/events"]);
  assert.deepEqual(other.open, ["b/events"]);
});
