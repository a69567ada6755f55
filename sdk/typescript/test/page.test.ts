/** A page that closes, rests in the back/forward cache, or was hidden: with a page of the tests' own. */

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { type Now, SECOND } from "../src/core/clocks.js";
import { licenseDoor, PATIENCE_SECONDS } from "../src/core/door.js";
import { Driver } from "../src/driver.js";
import type { Hold } from "../src/hold.js";
import { Client } from "../src/index.js";
import { attachToPage, type Host, page as platform } from "../src/page.js";
import { TokenCache } from "../src/tokens.js";
import { Transport } from "../src/transport.js";
import { GRANT, type Scripted, scripted } from "./scripted.js";

const SESSIONS = "/api/v1/licenses/sessions";
const BEAT = `PATCH ${SESSIONS}/${GRANT.session_id}/heartbeat`;
const RELEASE = `DELETE ${SESSIONS}/${GRANT.session_id}`;

/** A page with one seat. */
class Page {
  readonly window = new EventTarget();
  readonly document = Object.assign(new EventTarget(), { visibilityState: "visible" as DocumentVisibilityState });
  readonly driver: Driver;
  readonly detach: () => void;
  hold!: Hold;
  #ahead = 0;

  private constructor(readonly server: Scripted) {
    const now = (): Now => {
      const mono = Math.floor(performance.now() * 1_000) + this.#ahead;
      return { mono, boot: mono };
    };
    const report = (error: unknown) => assert.fail(String(error));
    const host = { ...platform, report };
    this.driver = new Driver(host, now, new Transport(server.url), new TokenCache("t"), true);
    const window = Object.assign(this.window, { document: this.document });
    this.detach = attachToPage(this.driver, window as unknown as Host);
  }

  /** Opens a page whose server answers a DELETE once `release` has settled. */
  static async open(grant: Record<string, unknown> = {}, release?: Promise<void>): Promise<Page> {
    const body = { ...GRANT, release_code: "c0de", ...grant };
    const server = await scripted(
      ({ target }) => ({
        status: target.startsWith("POST") ? 201 : 200,
        body,
        delay: target === RELEASE && release !== undefined ? release : 0,
      }),
      (stream) => stream.send(":\n\n"),
    );
    const page = new Page(server);
    const door = licenseDoor("K", { machineId: "m" });
    page.hold = page.driver.start({ door, wait: 0, patience: PATIENCE_SECONDS * SECOND });
    while (page.state === "acquiring") await sleep(5);
    await server.stream(0);
    return page;
  }

  get state(): string {
    return this.hold.state.kind;
  }

  turn(type: "pagehide" | "pageshow", persisted: boolean): void {
    this.window.dispatchEvent(Object.assign(new Event(type), { persisted }));
  }

  show(visibilityState: DocumentVisibilityState): void {
    this.document.visibilityState = visibilityState;
    this.document.dispatchEvent(new Event("visibilitychange"));
  }

  advance(seconds: number): void {
    this.#ahead += seconds * SECOND;
  }

  /** Waits for so many heartbeats, and a while for one too many. */
  async beats(count: number): Promise<void> {
    for (const end = performance.now() + 10_000; performance.now() < end && this.server.arrived(BEAT).length < count; ) {
      await sleep(5);
    }
    await sleep(150);
    assert.equal(this.server.arrived(BEAT).length, count, "heartbeats");
  }

  async close(): Promise<void> {
    this.detach();
    await this.driver.releaseAll();
    this.server.close();
  }
}

/** Plays a browser whose `sendBeacon` answers `taken`, or fails; returns the beacons. */
async function withBeacons(taken: boolean | "throws" | "missing", play: () => Promise<void>): Promise<string[][]> {
  const beacons: string[][] = [];
  const sendBeacon = (...beacon: string[]) => {
    if (taken === "throws") throw new TypeError("blocked");
    beacons.push(beacon);
    return taken;
  };
  const navigator = taken === "missing" ? {} : { sendBeacon };
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
  try {
    await play();
  } finally {
    if (before === undefined) delete (globalThis as { navigator?: unknown }).navigator;
    else Object.defineProperty(globalThis, "navigator", before);
  }
  return beacons;
}

test("page: a page that closes gives its seat back by a beacon", async () => {
  const page = await Page.open();
  const stream = await page.server.stream(0);
  const beacons = await withBeacons(true, async () => page.turn("pagehide", false));
  const body = { session_id: GRANT.session_id, release_code: "c0de" };
  assert.deepEqual(beacons, [[`${page.server.url}${SESSIONS}/release`, JSON.stringify(body)]]);
  assert.equal(page.state, "released");
  assert.equal(await page.hold.finished, false);
  await stream.closed;
  await sleep(150);
  assert.deepEqual([page.server.arrived(RELEASE), page.server.arrived(BEAT), page.driver.holds.size], [[], [], 0]);
  await page.close();
});

test("page: a page that closes during a release sends a beacon as well, for the release may not arrive", async () => {
  const page = await Page.open({}, new Promise(() => undefined));
  const beacons = await withBeacons(true, async () => {
    void page.hold.release();
    page.turn("pagehide", false);
  });
  assert.equal(beacons.length, 1);
  assert.equal(await page.hold.finished, false);
  await page.close();
});

for (const [what, taken, grant] of [
  ["takes no beacon", false, {}],
  ["has no beacons", "missing", {}],
  ["blocks beacons", "throws", {}],
  ["got no release code", true, { release_code: undefined }],
] as const) {
  test(`page: a page that closes and ${what} sends a release`, async () => {
    const page = await Page.open(grant);
    const beacons = await withBeacons(taken, async () => page.turn("pagehide", false));
    assert.equal(await page.hold.finished, true);
    assert.equal(page.server.arrived(RELEASE).length, 1);
    assert.equal(beacons.length, taken === false ? 1 : 0);
    await page.close();
  });
}

test("page: a page in the back/forward cache keeps its seat, and closes its stream until it comes back", async () => {
  const page = await Page.open();
  const beacons = await withBeacons(true, async () => {
    page.turn("pagehide", true);
    await (await page.server.stream(0)).closed;
    // A timer may still fire.
    page.advance(150);
    page.driver.tick();
    await page.beats(1);
    await sleep(1_500);
    assert.equal(page.server.streams.length, 1);
    page.turn("pageshow", true);
    await page.server.stream(1);
    await page.beats(2);
    assert.equal(page.state, "active");
  });
  assert.deepEqual([beacons, page.server.arrived(RELEASE)], [[], []]);
  await page.close();
});

test("page: each seat of a page has a stream of its own", async () => {
  const page = await Page.open();
  const door = licenseDoor("K", { machineId: "other" });
  const other = page.driver.start({ door, wait: 0, patience: PATIENCE_SECONDS * SECOND });
  await page.server.stream(1);
  const target = `GET ${SESSIONS}/${GRANT.session_id}/events`;
  assert.deepEqual(page.server.streams.map((stream) => stream.target), [target, target]);
  assert.equal(other.state.kind, "active");
  await page.close();
});

test("page: the first show of a page is no return", async () => {
  const page = await Page.open();
  page.turn("pageshow", false);
  await page.beats(0);
  await page.close();
});

test("page: a page that was hidden for long asks the server at once, and one that was not does not", async () => {
  const page = await Page.open();
  page.show("visible");
  page.show("hidden");
  page.advance(9.5);
  page.show("visible");
  await page.beats(0);
  page.show("hidden");
  await page.beats(0);
  page.advance(10);
  page.show("visible");
  await page.beats(1);
  page.show("visible");
  await page.beats(1);
  await page.close();
});

test("page: a late timer of a hidden page is no outage before the deadline", async () => {
  const page = await Page.open();
  const told: string[] = [];
  page.hold.listen(({ kind }) => told.push(kind));
  // The heartbeat is due after 120 s at the latest, and the deadline passes after 360 s.
  for (let beats = 1; beats <= 3; beats += 1) {
    page.advance(240);
    page.driver.tick();
    await page.beats(beats);
  }
  assert.deepEqual(told, ["active"]);
  page.advance(400);
  page.driver.tick();
  await page.beats(4);
  assert.deepEqual(told, ["active", "offline", "active"]);
  await page.close();
});

test("page: a page that comes back to its user tells no outage, and asks once", async () => {
  const page = await Page.open();
  const told: string[] = [];
  page.hold.listen(({ kind }) => told.push(kind));
  // No heartbeat is due, then one is.
  for (const [beats, seconds] of [[1, 20], [2, 240]] as const) {
    page.show("hidden");
    page.advance(seconds);
    page.show("visible");
    await page.beats(beats);
  }
  assert.deepEqual(told, ["active"]);
  await page.close();
});

test("page: the return of the network asks the server at once", async () => {
  const page = await Page.open();
  page.window.dispatchEvent(new Event("online"));
  await page.beats(1);
  await page.close();
});

test("page: a client that is closed has no listener left", async (t) => {
  const [window, document] = [new EventTarget(), new EventTarget()];
  const globals = { addEventListener: window.addEventListener.bind(window), document };
  Object.assign(globalThis, globals);
  t.after(() => {
    for (const name of Object.keys(globals)) delete (globalThis as Record<string, unknown>)[name];
  });
  const count = () =>
    ["pagehide", "pageshow", "online", "visibilitychange"].flatMap((name) => [window, document].map((target) => getEventListeners(target, name).length));
  const client = new Client("http://127.0.0.1:1", { token: "t" });
  const acquire = client.license("K").acquire({ machineId: "m" });
  assert.deepEqual(count(), [1, 0, 1, 0, 1, 0, 0, 1]);
  const closed = assert.rejects(acquire, { code: "closed" });
  await client.close();
  await closed;
  assert.deepEqual(count(), [0, 0, 0, 0, 0, 0, 0, 0]);
});

test("page: a client that is closed leaves the page alone", async () => {
  const page = await Page.open();
  page.detach();
  const beacons = await withBeacons(true, async () => {
    page.turn("pagehide", false);
    page.turn("pageshow", true);
    page.window.dispatchEvent(new Event("online"));
    page.show("hidden");
    page.advance(10);
    page.show("visible");
    await page.beats(0);
  });
  assert.deepEqual([beacons, page.state], [[], "active"]);
  await page.close();
});
