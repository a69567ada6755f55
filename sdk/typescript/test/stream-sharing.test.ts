/** Seats of one client that share event streams, against a server of the tests' own. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, type ClientOptions, type Seat } from "../src/index.node.js";
import { type Arrived, type Reply, type Scripted, scripted, type Stream } from "./scripted.js";

const SESSIONS = "/api/v1/licenses/sessions";
const GONE = { type: "/problems/session-ended", title: "gone", reason: "revoked" };
/** The stream of a socket of Node.js, and the stream of a `fetch`. */
const WAYS: [string, Partial<ClientOptions>][] = [
  ["socket", {}],
  ["fetch", { fetch }],
];

/** Returns the session of the seat with this number, which counts from 0. */
function session(number: number): string {
  return `0198a0aa-0000-7000-8000-${`${number}`.padStart(12, "0")}`;
}

/** Returns the numbers of the seats that a request for a stream names, in order. */
function seatsIn({ target }: Stream): number[] {
  const [, first = "", list] = /^GET \/api\/v1\/licenses\/sessions\/([^/]+)\/events(?:\?with=(.+))?$/.exec(target) ?? [];
  const sessions = list === undefined ? [first] : [first, ...list.split(",")];
  return sessions.map((session) => Number(session.split("-").at(-1))).sort((one, other) => one - other);
}

function end(number: number): string {
  return `event: revoked\ndata: ${JSON.stringify({ session_id: session(number), reason: "revoked" })}\n\n`;
}

function unknown(number: number): string {
  return `event: unknown\ndata: ${JSON.stringify({ session_id: session(number) })}\n\n`;
}

/** A client and its server, which numbers the sessions from 0. */
class Stage {
  readonly seats: Seat[] = [];
  /** The sessions that the server has ended: their heartbeats are answered 410. */
  readonly ended = new Set<string>();
  /** The milliseconds before the answer to a heartbeat. */
  delay = 0;
  readonly #open = new Set<Stream>();

  private constructor(
    readonly server: Scripted,
    readonly client: Client,
  ) {}

  /** Starts a server whose streams are answered by `listen`. */
  static async start(options: Partial<ClientOptions>, listen = (stream: Stream) => stream.send(":\n\n")): Promise<Stage> {
    let stage: Stage;
    let granted = 0;
    const reply = ({ target }: Arrived): Reply => {
      if (target.startsWith("POST")) return { status: 201, body: { session_id: session(granted++), expires_in_seconds: 360 } };
      const [, id = ""] = /sessions\/([^/]+)\/heartbeat$/.exec(target) ?? [];
      const { delay } = stage;
      return stage.ended.has(id) ? { status: 410, body: GONE, delay } : { status: 200, body: { expires_in_seconds: 360 }, delay };
    };
    const server = await scripted(reply, (stream) => {
      stage.#open.add(stream);
      void stream.closed.then(() => stage.#open.delete(stream));
      listen(stream);
    });
    stage = new Stage(server, new Client(server.url, { token: "t", ...options }));
    return stage;
  }

  /** Acquires further seats, and sorts them by the number of the session. */
  async acquire(count: number): Promise<void> {
    const { length } = this.seats;
    const machines = [...Array(count).keys()].map((number) => ({ machineId: `m${length + number}` }));
    const seats = await Promise.all(machines.map((machine) => this.client.license("K").acquire(machine)));
    this.seats.push(...seats.sort((one, other) => (one.sessionId! < other.sessionId! ? -1 : 1)));
  }

  /** Returns the seats of each open stream. */
  openSeats(): number[][] {
    return [...this.#open].map(seatsIn);
  }

  /** Waits until the open streams are about these seats, and returns the streams in this order. */
  async streams(...wanted: number[][]): Promise<Stream[]> {
    const found = () => this.openSeats().map(String).sort();
    await until(() => `${found()}` === `${wanted.map(String).sort()}`, () => `open: ${found().join(" and ")}`);
    return wanted.map((seats) => [...this.#open].find((stream) => `${seatsIn(stream)}` === `${seats}`)!);
  }

  /** Returns the heartbeats of a seat so far. */
  beats(number: number): number {
    return this.server.arrived(`PATCH ${SESSIONS}/${session(number)}/heartbeat`).length;
  }

  /** Ends the session of a seat, tells the end on a stream, and waits until the seat is lost. */
  async lose(number: number, stream: Stream): Promise<void> {
    this.ended.add(session(number));
    stream.send(end(number));
    await until(() => this.seats[number]!.signal.aborted, () => `seat ${number} is not lost`, 1_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
    this.server.close();
  }
}

async function until(condition: () => boolean, complaint: () => string, milliseconds = 5_000): Promise<void> {
  const over = performance.now() + milliseconds;
  for (; !condition(); await sleep(5)) assert.ok(performance.now() < over, complaint());
}

for (const [way, options] of WAYS) {
  test(`${way}: three seats share one connection, and an end reaches its seat`, async () => {
    await using stage = await Stage.start(options);
    await stage.acquire(3);
    const [stream] = await stage.streams([0, 1, 2]);
    assert.deepEqual([stream!.token, stream!.accept, stream!.lastEventId], ["t", "text/event-stream", undefined]);
    await stage.lose(1, stream!);
    for (const number of [0, 2]) stage.seats[number]!.check();
    assert.deepEqual([0, 1, 2].map((number) => stage.beats(number)), [0, 1, 0]);
    await stage.streams([0, 1, 2]);
  });

  test(`${way}: a leave closes nothing for the others, and the last leave closes`, async () => {
    await using stage = await Stage.start(options);
    await stage.acquire(3);
    const [stream] = await stage.streams([0, 1, 2]);
    const { length } = stage.server.streams;
    await stage.seats[0]!.release();
    await stage.lose(2, stream!);
    await stage.streams([0, 1, 2]);
    stage.seats[1]!.leave();
    await stage.streams();
    await sleep(300);
    assert.equal(stage.server.streams.length, length);
  });

  test(`${way}: a seat that joins opens the stream anew with the whole list`, async () => {
    await using stage = await Stage.start(options);
    await stage.acquire(1);
    await stage.streams([0]);
    await stage.acquire(1);
    const [stream] = await stage.streams([0, 1]);
    await stage.lose(0, stream!);
    await stage.acquire(1);
    await stage.streams([1, 2]);
    await stage.lose(2, (await stage.streams([1, 2]))[0]!);
    stage.seats[1]!.check();
  });
}

test("a companion that the server does not know gets a stream of its own", async () => {
  await using stage = await Stage.start({});
  await stage.acquire(3);
  const [stream] = await stage.streams([0, 1, 2]);
  // The first session of the list is another case.
  const [first] = [...stream!.target.matchAll(/-(\d{12})/g)].map(([, digits]) => Number(digits));
  const [moved, other] = [0, 1, 2].filter((number) => number !== first);
  stream!.send(unknown(moved!));
  const [, own] = await stage.streams([0, 1, 2], [moved!]);
  assert.equal(stage.beats(moved!), 0);
  await stage.lose(moved!, own!);
  await stage.lose(other!, stream!);
  await stage.streams([0, 1, 2]);
  stage.seats[first!]!.check();
});

test("the first session that the server does not know gets a stream of its own, and is asked about if that is refused", async () => {
  await using stage = await Stage.start({}, (stream) => {
    const { length } = stage.server.streams;
    if (length > 2 && String(seatsIn(stream)) === "0") stream.refuse(404);
    else stream.send(":\n\n");
  });
  await stage.acquire(1);
  await stage.streams([0]);
  await stage.acquire(1);
  const [stream] = await stage.streams([0, 1]);
  stream!.send(unknown(0));
  await until(() => stage.beats(0) === 1, () => "no heartbeat", 1_000);
  assert.deepEqual(stage.server.streams.map(seatsIn), [[0], [0, 1], [0]]);
  stream!.cut();
  await stage.streams([1]);
  for (const seat of stage.seats) seat.check();
});

test("an end that is told again while its heartbeat is under way sends no other heartbeat", async () => {
  await using stage = await Stage.start({});
  await stage.acquire(2);
  const [stream] = await stage.streams([0, 1]);
  stage.delay = 400;
  stream!.send(end(0));
  await until(() => stage.beats(0) === 1, () => "no heartbeat", 1_000);
  stream!.send(end(0));
  await stage.acquire(1);
  const [anew] = await stage.streams([0, 1, 2]);
  anew!.send(end(0));
  await sleep(600);
  assert.equal(stage.beats(0), 1);
  stage.seats[0]!.check();
  // The heartbeat was answered as live.
  await stage.lose(0, anew!);
  assert.equal(stage.beats(0), 2);
});

for (const status of [204, 400, 404]) {
  test(`a server that answers ${status} to a shared stream gets a stream of each seat`, async () => {
    await using stage = await Stage.start({}, (stream) => {
      if (stream.target.includes("?")) stream.refuse(status);
      else stream.send(":\n\n");
    });
    await stage.acquire(3);
    const streams = await stage.streams([0], [1], [2]);
    await stage.lose(1, streams[1]!);
    await stage.streams([0], [2]);
    assert.deepEqual([stage.beats(0), stage.beats(2)], [0, 0]);
  });
}

test("101 seats have two streams", async () => {
  await using stage = await Stage.start({});
  await stage.acquire(101);
  const found = () => stage.openSeats().map((seats) => seats.length).sort();
  await until(() => `${found()}` === "1,100", () => `open: ${found()}`);
  assert.deepEqual(new Set(stage.openSeats().flat()).size, 101);
});
