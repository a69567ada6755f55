/// <reference types="node" />
/** Node.js: the clocks, the end of the process, and the state directory. */

import { uptime } from "node:os";

import { clockFrom, monotonic, type Source, wall } from "./clock.js";
import type { Driver } from "./driver.js";
import { NodeOpener } from "./node-opener.js";
import type { Platform } from "./platform.js";
import { REMEDIES } from "./remedies.js";
import { takeSlot } from "./state-dir.js";
import { FetchOpener } from "./stream-opener.js";

/** A program on Node.js. */
export const node: Platform = {
  clock: () => clockFrom(monotonic, wall, uptimeOfLinux()),
  opener: (send, isOwn) => (isOwn ? new FetchOpener(send) : new NodeOpener()),
  attach: attachToProcess,
  report: (error) => process.emitWarning(error instanceof Error ? error : new Error(String(error))),
  remedies: REMEDIES,
  takeSlot: (stateDir, server, license, machineId) => takeSlot(stateDir, { server, license, machineId }),
};

function uptimeOfLinux(): Source | undefined {
  return process.platform === "linux" ? () => uptime() * 1_000_000 : undefined;
}

/** A process that has nothing more to do gives its seats back, then ends. */
function attachToProcess(driver: Driver): () => void {
  const end = () => {
    if (driver.hasSeats) void driver.releaseAll();
  };
  process.on("beforeExit", end);
  return () => process.off("beforeExit", end);
}
