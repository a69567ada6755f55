/** The runner of `sdk/vectors`: a transport and clocks of the test's own, no sockets. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { MILLISECOND, type Micros, NEVER, type Now, SECOND } from "../src/core/clocks.js";
import { type ClientProgram, deviceDoor, type DeviceType, type Door, licenseDoor, PATIENCE_SECONDS, type Plan } from "../src/core/door.js";
import { EventKind, type Event, type Host } from "../src/core/events.js";
import { Machine } from "../src/core/machine.js";
import { eventsPath, type Failure, type Request, type Response } from "../src/core/request.js";

type Json = Record<string, unknown>;

/** One holder, step by step. */
export interface Vector {
  readonly name: string;
  readonly jitter?: number | number[];
  readonly given?: Record<string, unknown>;
  readonly steps: Json[];
}

/** Many holders and one outage. */
export interface Fleet {
  readonly name: string;
  readonly holders: number;
  readonly seed: number;
  readonly grant: Json;
  readonly outage_from: string;
  readonly outage_to: string;
  readonly outage: string;
  readonly until: string;
  readonly bucket_share_max: number;
  readonly spread_min: string;
  readonly tries_per_interval_max: number;
  readonly state: string;
}

interface Expect {
  method: string;
  path: string;
  json?: unknown;
  at?: string;
  timeout?: string;
  bearer?: boolean;
}

/** The session of a held seat. */
interface Held {
  id: string;
  license_id?: string;
  seats?: [used: number, total: number];
  /** The path of the event stream. */
  events: string;
}

interface Answer {
  status: number;
  retry_after?: number;
  json?: unknown;
  text?: string;
}

/** The compiled test stands in `build/test`. */
const FOLDER = new URL("../../../vectors/", import.meta.url);
const SESSION = "0198a0aa-0000-7000-8000-000000000001";
const OTHER_SESSION = "0198a0aa-0000-7000-8000-000000000002";
const CALLS: Readonly<Record<string, EventKind.Abandon | EventKind.Acquire | EventKind.Release | EventKind.Wake>> = {
  abandon: EventKind.Abandon,
  acquire: EventKind.Acquire,
  release: EventKind.Release,
  wake: EventKind.Wake,
};
const UNITS: Record<string, number> = { ms: 0.001, s: 1, m: 60, h: 3_600, d: 86_400 };
const FAILURES = ["refused", "reset-before-send", "reset-after-send", "timeout", "truncated", "garbage", "no-token"];
/** More steps at one instant are a livelock. */
const STEPS_AT_ONCE_MAX = 100;
/** More steps of one holder than any fleet needs. */
const FLEET_STEPS_MAX = 10_000;
/** A round trip to the server of a fleet. */
const ROUND_TRIP = 5 * MILLISECOND;
/** Load is counted in buckets of this. */
const BUCKET = 100 * MILLISECOND;

/** Returns the name and the vectors of each file. */
export function files(): { file: string; vectors: unknown[] }[] {
  const names = readdirSync(fileURLToPath(FOLDER)).filter((name) => name.endsWith(".json"));
  return names.sort().map((file) => ({ file, vectors: JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")) }));
}

/** Reads `250ms`, `10s`, `5m`, `3h` or `400d`. */
function span(text: string): Micros {
  const [, number, unit] = /^([0-9.]+)(ms|s|m|h|d)$/.exec(text) ?? assert.fail(`no span: ${text}`);
  return Math.round(Number(number) * (UNITS[unit ?? ""] ?? NaN) * 1_000) * MILLISECOND;
}

/** Puts ids where a vector has their names. */
function withIds(text: string): string {
  return text.replaceAll("$S", SESSION).replaceAll("$T", OTHER_SESSION);
}

/** Rejects fields that the runner does not know. */
function only(fields: object, ...known: string[]): void {
  const unknown = Object.keys(fields).filter((name) => !known.includes(name));
  assert.deepEqual(unknown, [], "unknown fields");
}

function milliseconds(span: Micros): number {
  return Math.floor(span / MILLISECOND);
}

/** The clocks of one holder. Different initial readings expose code that mixes up two clocks. */
class Clocks {
  mono = 5_000 * SECOND;
  boot = 1_000_000 * SECOND;
  readonly began = this.boot;

  now(): Now {
    return { mono: this.mono, boot: this.boot };
  }

  advance(by: Micros): void {
    this.mono += by;
    this.sleep(by);
  }

  sleep(by: Micros): void {
    this.boot += by;
  }
}

/** Returns the body of the request as the driver sends it. */
function asSent({ body }: Request): unknown {
  return body === undefined ? undefined : JSON.parse(JSON.stringify(body));
}

/** Plays one vector. */
export function playVector(vector: Vector): void {
  only(vector, "name", "jitter", "given", "steps");
  const player = new Player(vector);
  for (const [index, step] of vector.steps.entries()) {
    const [[verb, argument] = assert.fail("a step without a verb"), ...more] = Object.entries(step);
    assert.equal(more.length, 0, "a step has one verb");
    try {
      player.play(verb, argument);
    } catch (error) {
      throw new Error(`step ${index + 1}, ${verb}: ${(error as Error).message}`, { cause: error });
    }
  }
  player.end();
}

/** A machine, its clocks, and the requests on their way. */
class Player {
  readonly #clocks = new Clocks();
  readonly #machine: Machine;
  readonly #door: Door;
  readonly #jitters: readonly number[];
  readonly #isDevice: boolean;
  #steps = 0;
  /** Requests not matched by an `expect` yet, each with its send time. */
  readonly #sent: { request: Request; at: Micros }[] = [];
  #flight: { request: number; timesOut: Micros } | undefined;
  #expected: number | undefined;
  readonly #cancelled: number[] = [];
  #refreshAsked = false;
  #told: string[] = [];
  #finish: string | undefined;

  constructor(vector: Vector) {
    this.#isDevice = vector.given?.["device"] !== undefined;
    this.#jitters = [vector.jitter ?? 0.5].flat();
    const plan = planOf(vector.given ?? {});
    this.#door = plan.door;
    this.#machine = new Machine(plan, this.#host(), this.#clocks.now());
  }

  play(verb: string, argument: unknown): void {
    switch (verb) {
      case "acquired":
        return this.#acquired(argument as Json);
      case "beat":
        return this.#beat(argument as Json);
      case "expect":
        return this.#expect(argument as Expect);
      case "answer":
        return this.#answer(argument as Answer);
      case "fail":
        assert.ok(FAILURES.includes(argument as string), `no failure: ${argument}`);
        return this.#step({ kind: EventKind.Over, request: this.#landed(), outcome: argument as Failure });
      case "cancelled":
        assert.ok(this.#expected !== undefined, "no request is expected");
        return assert.equal(this.#cancelled.includes(this.#expected), argument);
      case "advance":
        return this.#advance(span(argument as string));
      case "sleep":
        this.#clocks.sleep(span(argument as string));
        return this.#step({ kind: EventKind.Tick });
      case "freeze":
        this.#clocks.advance(span(argument as string));
        return this.#step({ kind: EventKind.Tick });
      case "wall":
        return this.#wall(argument as string);
      case "event":
        return this.#event(argument as { session: string; reason?: string; by?: string });
      case "call":
        if (argument === "activity") return this.#machine.activity(this.#clocks.boot);
        return this.#step({ kind: CALLS[argument as string] ?? assert.fail(`no call: ${argument}`) });
      case "token":
        return this.#token(argument as string);
      case "state":
        return this.#state(argument as Json);
      case "callback":
        assert.deepEqual(this.#told, argument);
        this.#told = [];
        return undefined;
      case "finish":
        assert.equal(this.#finish, argument);
        this.#finish = undefined;
        return undefined;
      case "session":
        return this.#session(argument as Held);
      case "no_request_for":
        assert.deepEqual(this.#sent, [], "requests before");
        this.#advance(span(argument as string));
        return assert.deepEqual(this.#sent, [], "requests");
      default:
        return assert.fail(`no verb: ${verb}`);
    }
  }

  end(): void {
    assert.deepEqual(this.#sent, [], "requests that nobody expects");
  }

  #acquired(fields: Json): void {
    this.#expect({ method: "POST", path: this.#isDevice ? "/api/v1/devices/sessions" : "/api/v1/licenses/acquire" });
    const granted = {
      session_id: "$S",
      expires_in_seconds: 360,
      heartbeat_interval_seconds: 120,
      status: "acquired",
    };
    this.#answer({ status: 201, json: { ...granted, ...fields } });
  }

  #beat(fields: Json): void {
    if (this.#isDevice) {
      only(fields);
      this.#expect({ method: "POST", path: "/api/v1/devices/sessions/heartbeat", json: { session_id: "$S" } });
      return this.#answer({ status: 204 });
    }
    this.#expect({ method: "PATCH", path: "/api/v1/licenses/sessions/$S/heartbeat" });
    this.#answer({ status: 200, json: { expires_in_seconds: 360, ...fields } });
  }

  #expect(expect: Expect): void {
    only(expect, "method", "path", "json", "at", "timeout", "bearer");
    const { request, at } = this.#sent.shift() ?? assert.fail("no request is sent");
    assert.equal(request.method, expect.method);
    assert.equal(request.path, withIds(expect.path));
    if (expect.json === undefined) assert.equal(request.body !== undefined, request.method === "POST", "a body");
    else assert.deepEqual(asSent(request), JSON.parse(withIds(JSON.stringify(expect.json))));
    assert.equal(request.isOpen !== true, expect.bearer ?? true, "a bearer token");
    if (expect.at !== undefined) assert.equal(milliseconds(at), milliseconds(span(expect.at)), "time of the request");
    if (expect.timeout !== undefined) {
      assert.equal(milliseconds(request.timeout), milliseconds(span(expect.timeout)), "timeout");
    }
    this.#expected = request.id;
  }

  #answer(answer: Answer): void {
    only(answer, "status", "retry_after", "json", "text");
    const body = answer.json === undefined ? (answer.text ?? "") : withIds(JSON.stringify(answer.json));
    const response: Response = { status: answer.status, retryAfter: answer.retry_after, body };
    this.#step({ kind: EventKind.Over, request: this.#landed(), outcome: response });
  }

  #wall(jump: string): void {
    // The machine sees no wall clock.
    span(jump.replace(/^[+-]/, ""));
    this.#step({ kind: EventKind.Tick });
  }

  #event(told: { session: string; reason?: string; by?: string }): void {
    only(told, "session", "reason", "by");
    assert.ok(told.reason ?? !told.by, "a cause without a reason");
    this.#step({ kind: EventKind.Ended, session: withIds(told.session), reason: told.reason, by: told.by });
  }

  #token(token: string): void {
    assert.ok(this.#refreshAsked, "no token was asked for");
    this.#refreshAsked = false;
    assert.ok(token === "fresh" || token === "none", `no token: ${token}`);
    this.#step({ kind: token === "fresh" ? EventKind.TokenReady : EventKind.TokenFailed });
  }

  #state(wanted: Json): void {
    only(wanted, "kind", "until", "since", "reason", "by", "retry", "code");
    const state = this.#machine.state(this.#clocks.boot) as unknown as Json;
    for (const [name, value] of Object.entries(wanted)) {
      if (name === "until" || name === "since") {
        const found = milliseconds((state[name] as number) - this.#clocks.began);
        assert.equal(found, milliseconds(span(value as string)), `${name} of ${JSON.stringify(state)}`);
      } else {
        assert.equal(state[name], value, `${name} of ${JSON.stringify(state)}`);
      }
    }
  }

  #session({ id, license_id, seats, events }: Held): void {
    const { session, licenseId, seats: told } = this.#machine.lease?.grant ?? {};
    assert.equal(session, withIds(id));
    assert.equal(licenseId, license_id);
    assert.deepEqual(told && [told.used, told.total], seats);
    assert.equal(eventsPath(this.#door, session ?? ""), withIds(events));
  }

  /** Advances the clocks, and fires timers and timeouts at their exact time. */
  #advance(by: Micros): void {
    const end = this.#clocks.boot + by;
    let atOnce = 0;
    for (;;) {
      const timesOut = this.#flight?.timesOut ?? NEVER;
      const upcoming = Math.min(this.#machine.wakeAt, timesOut);
      if (upcoming > end) break;
      atOnce = upcoming <= this.#clocks.boot ? atOnce + 1 : 0;
      assert.ok(atOnce < STEPS_AT_ONCE_MAX, "the machine asks for time that has passed");
      this.#clocks.advance(Math.max(0, upcoming - this.#clocks.boot));
      if (this.#flight !== undefined && timesOut === upcoming) {
        const { request } = this.#flight;
        this.#flight = undefined;
        this.#step({ kind: EventKind.Over, request, outcome: "timeout" });
      } else {
        this.#step({ kind: EventKind.Tick });
      }
    }
    this.#clocks.advance(end - this.#clocks.boot);
  }

  /** Takes the expected request out of flight; an aborted request may still be answered. */
  #landed(): number {
    const request = this.#expected ?? assert.fail("no request is expected");
    this.#expected = undefined;
    if (this.#flight?.request === request) {
      this.#flight = undefined;
    } else {
      assert.ok(this.#cancelled.includes(request), "the request timed out already");
    }
    return request;
  }

  #step(event: Event): void {
    const jitter = this.#jitters[this.#steps % this.#jitters.length] ?? NaN;
    this.#steps += 1;
    const isChanged = this.#machine.step(event, this.#clocks.now(), jitter, true);
    const state = this.#machine.state(this.#clocks.boot);
    if (state.kind === "active") assert.ok(this.#clocks.boot < state.until, "active after the deadline");
    if (isChanged) this.#told.push(state.kind);
    if (this.#machine.finish === undefined) return;
    assert.equal(this.#finish, undefined, "a second end");
    this.#finish = this.#machine.finish ? "given-back" : "unconfirmed";
  }

  #host(): Host {
    return {
      send: (request) => {
        assert.equal(this.#flight, undefined, "a second request in flight");
        this.#flight = { request: request.id, timesOut: this.#clocks.boot + request.timeout };
        this.#sent.push({ request, at: this.#clocks.boot - this.#clocks.began });
      },
      cancel: (request) => {
        if (this.#flight?.request === request) this.#flight = undefined;
        this.#cancelled.push(request);
      },
      refreshToken: () => {
        assert.ok(!this.#refreshAsked, "a second refresh");
        this.#refreshAsked = true;
      },
    };
  }
}

function planOf(given: Record<string, unknown>): Plan {
  const license = ["license_key", "machine_id", "instance_id", "user_agent", "metadata", "client"];
  only(given, ...license, "device", "wait", "patience");
  const text = (name: string) => given[name] as string | undefined;
  const wait = text("wait");
  const patience = text("patience");
  return {
    door: doorOf(given),
    wait: wait === undefined ? 0 : wait === "forever" ? NEVER : span(wait),
    patience: patience === undefined ? PATIENCE_SECONDS * SECOND : span(patience),
  };
}

function doorOf(given: Record<string, unknown>): Door {
  const text = (name: string) => given[name] as string | undefined;
  const device = given["device"] as Record<string, string> | undefined;
  if (device !== undefined) {
    only(device, "device_id", "device_type", "device_name", "session_id", "replace_session_id");
    const named = JSON.parse(withIds(JSON.stringify(device))) as typeof device;
    const [deviceId, deviceType] = [named["device_id"]!, named["device_type"] as DeviceType];
    return deviceDoor({ deviceId, deviceType, deviceName: named["device_name"] }, named["session_id"], named["replace_session_id"]);
  }
  const holder = {
    machineId: text("machine_id") ?? "m",
    instanceId: text("instance_id"),
    userAgent: text("user_agent"),
    metadata: given["metadata"] as Json | undefined,
  };
  return licenseDoor(text("license_key") ?? "K", holder, given["client"] as ClientProgram | undefined);
}

/** The generator of jitter that `sdk/vectors/README.md` defines. */
class SplitMix64 {
  #state: bigint;

  constructor(seed: number) {
    this.#state = BigInt(seed);
  }

  draw(): number {
    this.#state = BigInt.asUintN(64, this.#state + 0x9e3779b97f4a7c15n);
    let z = this.#state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  }
}

/** Plays many holders, one outage, and the load on the server after the outage. */
export function playFleet(fleet: Fleet): void {
  only(
    fleet,
    ...["name", "holders", "seed", "grant", "outage_from", "outage_to", "outage", "until"],
    ...["bucket_share_max", "spread_min", "tries_per_interval_max", "state"],
  );
  assert.equal(new SplitMix64(0).draw(), 0.8833108082136426, "the generator is not SplitMix64");
  const interval = Number(fleet.grant["heartbeat_interval_seconds"]) * SECOND;
  const most = fleet.tries_per_interval_max;
  const first: Micros[] = [];
  for (let number = 0; number < fleet.holders; number += 1) {
    const sent = fleetRequests(fleet, number);
    for (const [index, at] of sent.slice(most).entries()) {
      assert.ok(at - (sent[index] ?? NaN) >= interval, `holder ${number}: more than ${most} tries`);
    }
    first.push(sent.find((at) => at >= span(fleet.outage_to)) ?? assert.fail(`holder ${number} does not come back`));
  }
  const buckets = new Map<number, number>();
  for (const at of first) {
    const bucket = Math.floor(at / BUCKET);
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
  }
  const fullest = Math.max(...buckets.values());
  assert.ok(fullest / fleet.holders <= fleet.bucket_share_max, `${fullest} requests within 100 ms`);
  assert.ok(Math.max(...first) - Math.min(...first) >= span(fleet.spread_min), "the spread");
}

/** Returns the times of the requests of one holder since the beginning. */
function fleetRequests(fleet: Fleet, number: number): Micros[] {
  const random = new SplitMix64(fleet.seed + number);
  const clocks = new Clocks();
  const plan: Plan = { door: licenseDoor("K", { machineId: `m${number}` }), wait: 0, patience: PATIENCE_SECONDS * SECOND };
  const [from, to, end] = [fleet.outage_from, fleet.outage_to, fleet.until].map((at) => clocks.began + span(at));
  const body = JSON.stringify({ ...fleet.grant, session_id: SESSION });
  let flight: { request: Request; arrives: Micros } | undefined;
  const sent: Micros[] = [];
  const send = (request: Request) => {
    assert.equal(flight, undefined, "a second request in flight");
    sent.push(clocks.boot - clocks.began);
    flight = { request, arrives: clocks.boot + ROUND_TRIP };
  };
  const cancel = () => (flight = undefined);
  const refreshToken = () => assert.fail("a token is asked for");
  const machine = new Machine(plan, { send, cancel, refreshToken }, clocks.now());
  for (let step = 0; step < FLEET_STEPS_MAX; step += 1) {
    const arrives = flight?.arrives ?? NEVER;
    const upcoming = Math.min(arrives, machine.wakeAt);
    if (upcoming > end!) {
      assert.equal(machine.state(clocks.boot).kind, fleet.state, `holder ${number}`);
      return sent;
    }
    clocks.advance(Math.max(0, upcoming - clocks.boot));
    let event: Event = { kind: EventKind.Tick };
    if (flight !== undefined && arrives === upcoming) {
      const { id, method } = flight.request;
      flight = undefined;
      const status = method === "POST" ? 201 : 200;
      event =
        upcoming >= from! && upcoming < to!
          ? outageOf(fleet.outage, id)
          : { kind: EventKind.Over, request: id, outcome: { status, body } };
    }
    machine.step(event, clocks.now(), random.draw(), true);
  }
  return assert.fail(`holder ${number} goes round in circles`);
}

function outageOf(outage: string, request: number): Event {
  if (outage === "refused") return { kind: EventKind.Over, request, outcome: "refused" };
  assert.equal(outage, "503", "outage");
  return { kind: EventKind.Over, request, outcome: { status: 503, retryAfter: 1, body: "" } };
}
