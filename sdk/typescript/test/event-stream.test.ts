/** The event stream of one session, with a clock and connections of the tests' own. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";

import { NEVER, SECOND } from "../src/core/clocks.js";
import type { Follower } from "../src/event-stream.js";
import { SingleStream } from "../src/single-stream.js";
import { type Connection, DOOR, StreamDesk } from "./connections.js";

const SESSION = "0198a0aa-0000-7000-8000-000000000001";
const END = `id: 4-ended\nevent: evicted\ndata: {"session_id":"${SESSION}","reason":"evicted","by":{"session_id":"x","device_type":"tv","device_name":"Sofa"}}\n\n`;

/** A seat with its stream, and everything that a driver sees of them. */
class Desk extends StreamDesk implements Follower {
  readonly ends: [string | undefined, string | undefined][] = [];
  readonly state = { kind: "active", until: NEVER } as const;
  readonly stream = new SingleStream(SESSION, this, this, DOOR);

  ended(reason?: string, by?: string): void {
    this.ends.push([reason, by]);
  }

  async advance(seconds: number): Promise<void> {
    this.boot += seconds * SECOND;
    this.stream.tick(this.boot);
    await turn();
  }

  /** Returns the latest connection, after a tick. */
  async connected(): Promise<Connection> {
    await this.advance(0);
    return this.connections.at(-1)!;
  }
}

test("event stream: an end is told with its reason and its cause", async () => {
  const desk = new Desk();
  const connection = await desk.connected();
  const path = `/api/v1/licenses/sessions/${SESSION}/events`;
  assert.deepEqual([connection.path, connection.token, connection.lastEventId], [path, "t1", undefined]);
  await connection.answer(200, "text/event-stream; charset=utf-8");
  await connection.send(": still here\n\n");
  await connection.send('event: license_changed\ndata: {"seats_total":3}\n\n');
  await connection.send('event: revoked\ndata: {"session_id":"another","reason":"revoked"}\n\nevent: x\ndata: no json\n\n');
  assert.deepEqual([desk.ends, desk.arrivals], [[], 3]);
  await connection.send(END.slice(0, 40));
  await connection.send(END.slice(40));
  assert.deepEqual(desk.ends, [["evicted", "Sofa"]]);
});

test("event stream: characters of several bytes arrive in any pieces", async () => {
  const desk = new Desk();
  const connection = await desk.connected();
  await connection.answer(200);
  for (const byte of new TextEncoder().encode(END.replace("Sofa", "Ann’s Sofa"))) await connection.send(Uint8Array.of(byte));
  assert.deepEqual(desk.ends, [["evicted", "Ann’s Sofa"]]);
});

test("event stream: the backoff doubles from 1 s to 60 s, with full jitter", async () => {
  const desk = new Desk();
  desk.random = 0.999;
  for (const backoff of [1, 2, 4, 8, 16, 32, 60, 60]) {
    const connection = await desk.connected();
    const { length } = desk.connections;
    await connection.fail();
    assert.ok(Math.abs(desk.stream.wakeAt - desk.boot - backoff * 0.999 * SECOND) < 10, `${backoff}`);
    await desk.advance(backoff * 0.99);
    assert.equal(desk.connections.length, length);
    await desk.advance(backoff * 0.01);
    assert.equal(desk.connections.length, length + 1);
  }
  desk.random = 0;
  await (await desk.connected()).fail();
  assert.equal(desk.stream.wakeAt, desk.boot);
});

test("event stream: a stream that lived a minute starts the backoff anew", async () => {
  for (const [life, backoff] of [
    [59, 4],
    [60, 1],
  ] as const) {
    const desk = new Desk();
    desk.random = 1;
    for (const pause of [1, 2]) {
      await (await desk.connected()).fail();
      await desk.advance(pause);
    }
    const connection = await desk.connected();
    await connection.answer(200);
    for (let seconds = 0; seconds < life; seconds += 1) {
      await desk.advance(1);
      await connection.send(":\n");
    }
    await connection.send(undefined);
    assert.equal(desk.stream.wakeAt - desk.boot, backoff * SECOND, `${life} s`);
  }
});

test("event stream: a reconnect tells the id of the last event", async () => {
  const desk = new Desk();
  const first = await desk.connected();
  await first.answer(200);
  await first.send("id: 3\n\nid: 4\ndata: half");
  await first.send(undefined);
  await desk.advance(60);
  const second = await desk.connected();
  assert.equal(second.lastEventId, "3");
  // The half of the event is gone.
  await second.answer(200);
  await second.send(END);
  assert.deepEqual(desk.ends, [["evicted", "Sofa"]]);
});

test("event stream: 45 s without a byte are a dead connection", async () => {
  const desk = new Desk();
  const silent = await desk.connected();
  await desk.advance(44.9);
  assert.ok(!silent.isClosed);
  await silent.answer(200);
  await silent.send(":\n");
  await desk.advance(44.9);
  assert.ok(!silent.isClosed);
  await desk.advance(0.1);
  assert.ok(silent.isClosed);
  await desk.advance(1);
  assert.equal(desk.connections.length, 2);
});

test("event stream: a connection that never answers is dead after 45 s", async () => {
  const desk = new Desk();
  const hanging = await desk.connected();
  await desk.advance(45);
  assert.ok(hanging.isClosed);
});

for (const status of [204, 404]) {
  test(`event stream: ${status} is the end of tries, and told once`, async () => {
    const desk = new Desk();
    await (await desk.connected()).answer(status);
    assert.deepEqual(desk.ends, [[undefined, undefined]]);
    await desk.advance(86_400);
    desk.stream.reconnect();
    await desk.advance(86_400);
    assert.deepEqual([desk.connections.length, desk.ends.length], [1, 1]);
  });
}

for (const [what, status, type] of [
  ["503", 503, "application/problem+json"],
  ["a page", 200, "text/html"],
  ["a redirect", 0, ""],
] as const) {
  test(`event stream: ${what} is retried`, async () => {
    const desk = new Desk();
    const connection = await desk.connected();
    await connection.answer(status, type);
    await connection.send(END);
    assert.ok(connection.isClosed);
    assert.deepEqual(desk.ends, []);
    await desk.advance(60);
    assert.equal(desk.connections.length, 2);
  });
}

test("event stream: after 401 no request is sent with the same token", async () => {
  const desk = new Desk();
  await (await desk.connected()).answer(401);
  for (let tries = 0; tries < 20; tries += 1) await desk.advance(60);
  assert.equal(desk.connections.length, 1);
  desk.bearer.token = "t2";
  await desk.advance(60);
  assert.deepEqual([desk.connections.length, desk.connections[1]?.token], [2, "t2"]);
});

test("event stream: a fresh token or another server is tried at once", async () => {
  const desk = new Desk();
  for (let tries = 0; tries < 9; tries += 1) {
    await (await desk.connected()).fail();
    await desk.advance(60);
  }
  const connection = await desk.connected();
  const { length } = desk.connections;
  desk.stream.reconnect();
  assert.ok(connection.isClosed);
  await turn();
  assert.equal(desk.connections.length, length + 1);
  desk.random = 1;
  await desk.connections.at(-1)!.fail();
  assert.equal(desk.stream.wakeAt - desk.boot, SECOND);
});

test("event stream: a stream that is closed says and does nothing more", async () => {
  const desk = new Desk();
  const connection = await desk.connected();
  await connection.answer(200);
  desk.stream.close();
  assert.ok(connection.isClosed);
  await connection.send(END);
  await desk.advance(86_400);
  desk.stream.reconnect();
  await desk.advance(86_400);
  assert.deepEqual([desk.connections.length, desk.ends, desk.arrivals], [1, [], 0]);
});

test("event stream: a connection that is given to requests comes back after up to a minute", async () => {
  const desk = new Desk();
  desk.random = 1;
  desk.stream.yieldConnection();
  const connection = await desk.connected();
  await connection.answer(200);
  await desk.advance(40);
  await connection.send(":\n");
  await desk.advance(40);
  desk.stream.yieldConnection();
  assert.ok(connection.isClosed);
  assert.equal(desk.stream.wakeAt - desk.boot, 60 * SECOND);
});

test("event stream: an event without an end ends the connection, not the process", async () => {
  const desk = new Desk();
  const connection = await desk.connected();
  await connection.answer(200);
  await connection.send("data: ".padEnd(70_000, "x"));
  assert.ok(connection.isClosed);
});
