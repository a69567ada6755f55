/** The end of a page or of a Node.js process, and its return from sleep. */

import type { Driver } from "./driver.js";

interface NodeProcess {
  on(event: "beforeExit", listener: () => void): void;
  off(event: "beforeExit", listener: () => void): void;
  emitWarning(warning: Error): void;
}

const host = globalThis as {
  process?: NodeProcess;
  addEventListener?: typeof addEventListener;
  removeEventListener?: typeof removeEventListener;
  document?: Document;
  reportError?: (error: unknown) => void;
};

/** Connects the driver with the events of its host; returns a function that ends this. */
export function attach(driver: Driver): () => void {
  return typeof host.process?.on === "function" ? attachToProcess(driver, host.process) : attachToPage(driver);
}

/** Reports an error of the program's own code without ending the program. */
export function report(error: unknown): void {
  if (typeof host.process?.emitWarning === "function") {
    host.process.emitWarning(error instanceof Error ? error : new Error(String(error)));
  } else {
    host.reportError?.(error);
  }
}

/** A process that has nothing more to do gives its seats back, then ends. */
function attachToProcess(driver: Driver, process: NodeProcess): () => void {
  const end = () => {
    if (driver.hasSeats) void driver.releaseAll();
  };
  process.on("beforeExit", end);
  return () => process.off("beforeExit", end);
}

function attachToPage(driver: Driver): () => void {
  const hide = (event: PageTransitionEvent) => {
    // A page in the back/forward cache may come back, and keeps its seat.
    if (!event.persisted) driver.leave();
  };
  const show = (event: PageTransitionEvent) => {
    if (event.persisted) driver.wake();
  };
  const online = () => driver.wake();
  // Timers of a hidden page are late. The clocks tell a sleep; the change of a tab alone costs no heartbeat.
  const seen = () => driver.tick();
  host.addEventListener?.("pagehide", hide);
  host.addEventListener?.("pageshow", show);
  host.addEventListener?.("online", online);
  host.document?.addEventListener("visibilitychange", seen);
  return () => {
    host.removeEventListener?.("pagehide", hide);
    host.removeEventListener?.("pageshow", show);
    host.removeEventListener?.("online", online);
    host.document?.removeEventListener("visibilitychange", seen);
  };
}
