import assert from "node:assert/strict";
import { test } from "node:test";

import { clockFrom } from "../src/clock.js";
import { SECOND } from "../src/core/clocks.js";
import { clockWithUptime } from "../src/node-platform.js";

/** Three sources that a test sets, in seconds. */
function sources() {
  return { mono: 100, wall: 1_800_000_000, uptime: 5_000 };
}

test("clock: a sleep is counted by the uptime", () => {
  const at = sources();
  const clock = clockWithUptime(
    () => at.mono * SECOND,
    () => at.wall * SECOND,
    () => at.uptime * SECOND,
  );
  const before = clock();
  at.mono += 10;
  at.wall += 10 + 3_600;
  at.uptime += 10 + 3_600;
  const after = clock();
  assert.equal(after.mono - before.mono, 10 * SECOND);
  assert.equal(after.boot - before.boot, 3_610 * SECOND);
  at.mono += 1;
  at.wall += 1;
  at.uptime += 1;
  assert.equal(clock().boot - after.boot, SECOND);
});

test("clock: a sleep whose end sets the wall clock back is counted by the uptime", () => {
  const at = sources();
  const clock = clockWithUptime(
    () => at.mono * SECOND,
    () => at.wall * SECOND,
    () => at.uptime * SECOND,
  );
  const before = clock();
  at.wall -= 1_000_000;
  at.uptime += 60;
  assert.equal(clock().boot - before.boot, 60 * SECOND);
});

test("clock: a wall clock that is set is no sleep where there is an uptime", () => {
  const at = sources();
  const clock = clockWithUptime(
    () => at.mono * SECOND,
    () => at.wall * SECOND,
    () => at.uptime * SECOND,
  );
  const before = clock();
  at.wall += 366 * 86_400;
  assert.equal(clock().boot, before.boot);
  at.wall -= 366 * 86_400;
  assert.equal(clock().boot, before.boot);
});

test("clock: without an uptime the wall clock counts sleep, and never turns time back", () => {
  const at = sources();
  const clock = clockFrom(
    () => at.mono * SECOND,
    () => at.wall * SECOND,
  );
  const before = clock();
  at.wall += 60;
  assert.equal(clock().boot - before.boot, 60 * SECOND);
  at.wall -= 1_000;
  at.mono += 1;
  assert.equal(clock().boot - before.boot, 61 * SECOND);
});
