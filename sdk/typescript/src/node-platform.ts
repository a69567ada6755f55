/// <reference types="node" />
/** Node.js: the clocks, and the end of the process. */

import { uptime } from "node:os";

import { type Clock, clockFrom, monotonic, type Source, wall } from "./clock.js";
import type { Driver } from "./driver.js";
import type { Platform } from "./platform.js";
import { explain } from "./remedies.js";

/** The longest interval of a timer in milliseconds. */
const INTERVAL_MAX = 2 ** 31 - 1;

/** A program on Node.js. */
export const node: Platform = {
  clock: () => (process.platform === "linux" ? clockWithUptime(monotonic, wall, () => uptime() * 1_000_000) : clockFrom(monotonic, wall)),
  attach: attachToProcess,
  report: (error) => process.emitWarning(error instanceof Error ? error : new Error(String(error))),
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
  // The uptime is slow to read: a gap says when to look.
  return clockFrom(monotonic, wall, (_, mono) => {
    const now = { mono, uptime: uptime() };
    const gap = now.uptime - last.uptime - (now.mono - last.mono);
    last = now;
    return gap;
  });
}

/** A process that has nothing more to do gives its seats back, then ends. */
function attachToProcess(driver: Driver): () => void {
  const end = () => {
    if (driver.seats.size > 0) void driver.releaseAll();
  };
  process.on("beforeExit", end);
  return () => process.off("beforeExit", end);
}
