/** The timer of a client with many seats. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";

import { MILLISECOND, SECOND } from "../src/core/clocks.js";
import { licenseDoor } from "../src/core/door.js";
import type { Call } from "../src/core/request.js";
import { Driver } from "../src/driver.js";
import { node } from "../src/node-platform.js";
import type { Server } from "../src/server.js";
import { TokenCache } from "../src/tokens.js";

const SEATS = 1_000;
const INTERVAL = 120;
const STEP = 50 * MILLISECOND;

test("a thousand seats wake the program about once a second, and no heartbeat is late", async (t) => {
  let now = 5_000 * SECOND;
  const sent: { call: Call; at: number }[] = [];
  const terms = { expires_in_seconds: 3 * INTERVAL, heartbeat_interval_seconds: INTERVAL };
  const server = {
    isSharing: false,
    send: async (call: Call) => {
      sent.push({ call, at: now });
      return { status: 200, body: JSON.stringify({ session_id: `s${sent.length}`, ...terms }) };
    },
  } as unknown as Server;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const clock = () => ({ mono: now, boot: now });
  const driver = new Driver(node, clock, server, new TokenCache("t"), false);
  const begin = now;
  for (let number = 0; number < SEATS; number += 1) {
    driver.start({ door: licenseDoor("K", { machineId: `m${number}` }), wait: 0, patience: 10 * SECOND });
  }
  await turn();
  assert.equal(sent.splice(0).length, SEATS, "an acquire of each seat");
  while (now < begin + (INTERVAL + 2) * SECOND) {
    now += STEP;
    t.mock.timers.tick(STEP / MILLISECOND);
    await turn();
  }
  const beats = sent.filter(({ call }) => call.method === "PATCH");
  assert.ok(beats.length >= SEATS, `${beats.length} heartbeats of ${SEATS} seats within an interval`);
  const wakeUps = new Set(beats.map(({ at }) => at)).size;
  assert.ok(wakeUps <= INTERVAL, `${wakeUps} wake-ups for heartbeats in ${INTERVAL} s`);
});
