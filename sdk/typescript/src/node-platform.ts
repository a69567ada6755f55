/// <reference types="node" />
/** Node.js: the clocks, and the end of the process. */

import { uptime } from "node:os";
import { inspect } from "node:util";

import { type Clock, clockFrom, GAP_MIN, monotonic, type Source, wall } from "./clock.js";
import type { Micros } from "./core/clocks.js";
import type { Hold } from "./hold.js";
import type { Platform } from "./platform.js";
import { explain } from "./remedies.js";
import { Subscription } from "./shared-stream.js";

/** The longest interval of a timer in milliseconds. */
const INTERVAL_MAX = 2 ** 31 - 1;

/** A program on Node.js. */
export const node: Platform = {
  isPunctual: true,
  clock: () => (process.platform === "linux" ? clockWithUptime(monotonic, wall, () => uptime() * 1_000_000) : clockFrom(monotonic, wall)),
  // Each seat attaches itself: see `endWithProcess`.
  attach: () => () => undefined,
  Stream: Subscription,
  report: (error) => process.emitWarning(error instanceof Error ? error : new Error(inspect(error))),
  explain,
  wait: async (promise) => {
    const alive = setInterval(() => undefined, INTERVAL_MAX);
    try {
      return await promise;
    } finally {
      clearInterval(alive);
    }
  },
};

/** Returns a clock that measures sleep by the uptime, which includes sleep and which nobody sets. */
export function clockWithUptime(monotonic: Source, wall: Source, uptime: Source): Clock {
  let last = { mono: monotonic(), uptime: uptime() };
  let lead = wall() - last.mono;
  let slept: Micros = 0;
  return clockFrom(monotonic, (mono) => {
    const gap = wall() - mono - lead;
    lead += gap;
    // The uptime is slow to read: a gap says when to look.
    if (Math.abs(gap) > GAP_MIN) {
      const now = { mono, uptime: uptime() };
      slept += now.uptime - last.uptime - (now.mono - last.mono);
      last = now;
    }
    return mono + slept;
  });
}

/** The seats of all clients: one listener serves them all, and a client without a seat leaves nothing with the process. */
const holds = new Set<Hold>();

/** Gives the seat back once the process has nothing more to do. */
export function endWithProcess(hold: Hold): void {
  if (holds.size === 0) process.on("beforeExit", releaseAll);
  holds.add(hold);
  void hold.finished.then(() => {
    holds.delete(hold);
    if (holds.size === 0) process.off("beforeExit", releaseAll);
  });
}

function releaseAll(): void {
  for (const hold of holds) void hold.release();
}
