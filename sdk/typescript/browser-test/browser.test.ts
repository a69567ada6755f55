/**
 * Seats of pages in a real Chromium, against a real server of another origin.
 *
 * Needs the program `chromium` (Debian: `apt-get install chromium`; else the variable `CHROMIUM`), and the variable
 * `SDK_TEST_SERVER`. Without them the tests fail.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "../src/index.node.js";
import { BINARY, Server } from "../test/server.js";
import { Chromium, findChromium, type Page } from "./chromium.js";
import { Site } from "./site.js";

/** A hidden tab may run its timers once a minute after this many seconds; by default after five minutes. */
const THROTTLED_AFTER = 10;
const FLAGS = [`--enable-features=IntensiveWakeUpThrottling:grace_period_seconds/${THROTTLED_AFTER}`];
/** The time that a hidden tab is watched: more than two lives of a seat of 90 s. */
const HIDDEN_SECONDS = 200;

const chromium = findChromium();
const missing = [
  ...(chromium === undefined ? ["chromium: install the package chromium, or name the program in CHROMIUM"] : []),
  ...(BINARY === undefined ? ["SDK_TEST_SERVER: the path of the server's binary"] : []),
];
if (missing.length > 0) {
  console.error(`The tests of pages need:\n  ${missing.join("\n  ")}`);
  process.exit(1);
}

/** A browser, a site and a server. */
class Stage {
  private constructor(
    readonly browser: Chromium,
    readonly site: Site,
    readonly server: Server,
  ) {}

  static async start(): Promise<Stage> {
    const site = await Site.start();
    const server = await Server.start({ SEATKEEPER_SERVER_CORS_ORIGINS: site.origin });
    return new Stage(await Chromium.start(chromium!, FLAGS), site, server);
  }

  /** Opens a page that holds a seat; the page tells its states with their time. */
  async hold(key: string, machineId: string, options: Record<string, unknown> = {}): Promise<Page> {
    const page = await this.browser.open(`${this.site.origin}/`);
    await this.acquire(page, key, machineId, options);
    return page;
  }

  /** Acquires a seat in a page that is loaded. */
  async acquire(page: Page, key: string, machineId: string, options: Record<string, unknown> = {}, wait = 0): Promise<void> {
    await page.until("window.seatkeeper");
    const settings = JSON.stringify({ token: this.server.token(), ...options });
    // A closing page has the beacon alone: its fetch sends no release.
    await page.evaluate(`(async () => {
      const send = (url, init) => init?.method === "DELETE" ? Promise.reject(new TypeError("closed")) : fetch(url, init);
      window.client = new seatkeeper.Client(${JSON.stringify(this.server.url)}, { ...${settings}, fetch: send });
      const onChange = ({ kind, reason }) => told.push({ kind, reason, at: Date.now() });
      window.seat = await client.license(${JSON.stringify(key)}).acquire({ machineId: ${JSON.stringify(machineId)}, wait: ${wait}, onChange });
    })()`);
  }

  /** Returns the milliseconds until the machine holds no seat. */
  async freed(machine: string, milliseconds = 5_000): Promise<number> {
    const began = performance.now();
    while (this.server.liveMachines().includes(machine)) {
      assert.ok(performance.now() - began < milliseconds, `${machine} holds a seat after ${milliseconds} ms`);
      await sleep(10);
    }
    return performance.now() - began;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser[Symbol.asyncDispose]();
    await this.site[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
  }
}

interface Told {
  readonly kind: string;
  readonly reason?: string;
  readonly by?: string;
  readonly at: number;
}

test("a page is told of its revoked seat within a second", { timeout: 60_000 }, async (t) => {
  await using stage = await Stage.start();
  t.diagnostic(await stage.browser.version());
  const page = await stage.hold(stage.server.license("REVOKED", { ttl: 600 }), "page");
  await sleep(500);
  stage.server.revoke(await page.evaluate<string>("seat.sessionId"));
  const revoked = Date.now();
  await page.until("seat.signal.aborted", 2_000);
  const told = await page.evaluate<Told[]>("told");
  assert.deepEqual([told.at(-1)?.kind, told.at(-1)?.reason], ["lost", "revoked"]);
  const late = told.at(-1)!.at - revoked;
  t.diagnostic(`told ${late} ms after the command`);
  assert.ok(late <= 1_000, `${late} ms`);
});

test("a page is told of the device that takes its screen within a second", { timeout: 60_000 }, async (t) => {
  await using stage = await Stage.start();
  const page = await stage.browser.open(`${stage.site.origin}/`);
  await page.until("window.seatkeeper");
  const token = stage.server.token();
  await page.evaluate(`(async () => {
    window.client = new seatkeeper.Client(${JSON.stringify(stage.server.url)}, { token: ${JSON.stringify(token)} });
    const onChange = ({ kind, reason, by }) => told.push({ kind, reason, by, at: Date.now() });
    window.seat = await client.device({ deviceId: "tab", deviceType: "browser" }).admit({ onChange });
  })()`);
  await sleep(500);
  await using other = new Client(stage.server.url, { token });
  const began = Date.now();
  await other.device({ deviceId: "phone", deviceType: "mobile", deviceName: "Ann’s phone" }).admit();
  await page.until("seat.signal.aborted", 2_000);
  const lost = (await page.evaluate<Told[]>("told")).at(-1)!;
  assert.deepEqual([lost.kind, lost.reason, lost.by], ["lost", "evicted", "Ann’s phone"]);
  t.diagnostic(`told ${lost.at - began} ms after the admission began`);
  assert.ok(lost.at - began <= 1_000);
});

test("a tab that closes frees its seat within a second", { timeout: 60_000 }, async (t) => {
  await using stage = await Stage.start();
  const key = stage.server.license("CLOSED", { seats: 2, ttl: 600 });
  let [closed, left] = [Infinity, Infinity];
  // A busy host delays single tabs, so the fastest of three counts.
  for (let round = 0; round < 3 && Math.max(closed, left) > 1_000; round += 1) {
    const closing = await stage.hold(key, "closing");
    const leaving = await stage.hold(key, "leaving");
    assert.deepEqual(stage.server.liveMachines(), ["closing", "leaving"]);
    await closing.close();
    closed = Math.min(closed, await stage.freed("closing"));
    assert.deepEqual(stage.server.liveMachines(), ["leaving"]);
    // A reload is no rest in the cache either.
    await leaving.evaluate("location.reload()");
    left = Math.min(left, await stage.freed("leaving"));
  }
  t.diagnostic(`free ${Math.round(closed)} ms after the tab closed, ${Math.round(left)} ms after the reload`);
  assert.ok(closed <= 1_000, `${closed} ms`);
  assert.ok(left <= 1_000, `${left} ms`);
});

test("a page that is reloaded gets the one seat under its new name", { timeout: 60_000 }, async () => {
  await using stage = await Stage.start();
  const key = stage.server.license("RELOADED", { ttl: 600 });
  const page = await stage.hold(key, "load-0");
  for (const name of ["load-1", "load-2", "load-3"]) {
    await page.evaluate("seatkeeper = undefined, location.reload()");
    await stage.acquire(page, key, name, {}, 3);
    assert.deepEqual(stage.server.liveMachines(), [name]);
  }
});

test("a tab that leaves its seat on its way out costs a second tab nothing", { timeout: 60_000 }, async () => {
  await using stage = await Stage.start();
  const key = stage.server.license("SHARED", { ttl: 600 });
  const [closing, staying] = [await stage.hold(key, "shared"), await stage.hold(key, "shared")];
  await closing.evaluate("window.onAway = () => seat.leave()");
  await closing.close();
  // A beacon would have freed the seat.
  await sleep(2_000);
  assert.deepEqual(stage.server.liveMachines(), ["shared"]);
  await staying.evaluate("client.wake()");
  await staying.until("told.length === 3");
  assert.deepEqual(await staying.evaluate("told.map((state) => state.kind)"), ["active", "offline", "active"]);
});

test("a page in the back/forward cache keeps its seat, and comes back with it", { timeout: 60_000 }, async () => {
  await using stage = await Stage.start();
  const page = await stage.hold(stage.server.license("CACHED", { ttl: 600 }), "cached");
  await sleep(500);
  const session = await page.evaluate<string>("seat.sessionId");
  await page.navigate(`${stage.site.origin}/other`);
  await page.until("location.pathname === '/other'");
  await sleep(2_000);
  assert.deepEqual(stage.server.liveMachines(), ["cached"]);
  await page.back();
  await page.until("shown.at(-1) === true && told.length > 1 && seat.state.kind === 'active'");
  assert.deepEqual(await page.evaluate("shown"), [false, true]);
  assert.equal(await page.evaluate("seat.sessionId"), session);
  // Its stream is back as well.
  await sleep(500);
  stage.server.revoke(session);
  const revoked = Date.now();
  await page.until("seat.signal.aborted", 2_000);
  const told = await page.evaluate<Told[]>("told");
  assert.deepEqual(
    told.map((state) => state.kind),
    ["active", "offline", "active", "lost"],
  );
  assert.ok(told.at(-1)!.at - revoked <= 1_000);
});

test("a hidden tab whose timers are late by a minute keeps a seat of 90 s", { timeout: 400_000 }, async (t) => {
  await using stage = await Stage.start();
  const key = stage.server.license("HIDDEN", { seats: 2, ttl: 90 });
  const pages = [await stage.hold(key, "stream"), await stage.hold(key, "timers", { eventStreams: false })];
  const cover = await stage.browser.open(`${stage.site.origin}/other`);
  await cover.show();
  const sessions: string[] = [];
  for (const page of pages) {
    await page.until("document.visibilityState === 'hidden'");
    sessions.push(await page.evaluate<string>("seat.sessionId"));
    await page.evaluate(`{
      window.longest = 0;
      window.invalid = 0;
      let last = performance.now();
      const look = () => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        if (!seat.isValid) invalid += 1;
        setTimeout(look, 1000);
      };
      look();
    }`);
  }
  const least = [Infinity, Infinity];
  const end = performance.now() + HIDDEN_SECONDS * 1_000;
  while (performance.now() < end) {
    await sleep(2_000);
    assert.deepEqual(stage.server.liveMachines(), ["stream", "timers"]);
    for (const [index, page] of pages.entries()) {
      const remaining = await page.evaluate<number>("seat.remaining");
      assert.ok(remaining > 0);
      least[index] = Math.min(least[index]!, remaining);
    }
  }
  for (const [index, page] of pages.entries()) {
    const longest = await page.evaluate<number>("longest");
    const kinds = await page.evaluate<string[]>("told.map((state) => state.kind)");
    t.diagnostic(`timers every ${Math.round(longest)} ms; at least ${Math.round(least[index]!)} s remained; ${kinds.join(" ")}`);
    assert.ok(longest >= 50_000, `timers were not throttled: ${longest} ms`);
    assert.deepEqual(kinds, ["active"]);
    assert.equal(await page.evaluate("invalid"), 0);
    assert.equal(await page.evaluate("seat.sessionId"), sessions[index]);
  }
  // Comments on the stream, every 15 s, fire the timers: a heartbeat comes 45 s after the last at the latest.
  assert.ok(least[0]! >= 40, `${least[0]} s remained`);
});
