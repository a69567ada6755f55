/** The end of a page or of a Node.js process, and its return from sleep. */

import { SECOND } from "./core/clocks.js";
import type { Driver } from "./driver.js";

interface NodeProcess {
  on(event: "beforeExit", listener: () => void): void;
  off(event: "beforeExit", listener: () => void): void;
  emitWarning(warning: Error): void;
}

/** The parts of a page or of Node.js that the client uses. */
export interface Host {
  process?: NodeProcess;
  addEventListener?: typeof addEventListener;
  removeEventListener?: typeof removeEventListener;
  document?: Pick<Document, "addEventListener" | "removeEventListener" | "visibilityState">;
  reportError?: (error: unknown) => void;
}

const host = globalThis as Host;
/** A page that was hidden for less than this had no late timer: browsers then fire timers once a second. */
const HIDDEN_MIN = 10 * SECOND;

/** Connects the driver with the events of its host; returns a function that ends this. */
export function attach(driver: Driver): () => void {
  return typeof host.process?.on === "function" ? attachToProcess(driver, host.process) : attachToPage(driver, host);
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

/** Connects the driver with the events of a page; returns a function that ends this. */
export function attachToPage(driver: Driver, page: Host): () => void {
  const { document } = page;
  let hiddenSince = document?.visibilityState === "hidden" ? driver.clock().boot : undefined;
  const hide = (event: PageTransitionEvent) => {
    // A page in the back/forward cache may come back, and keeps its seat.
    if (event.persisted) driver.suspend();
    else driver.leave();
  };
  const show = (event: PageTransitionEvent) => {
    if (event.persisted) driver.wake();
  };
  const online = () => driver.wake();
  const turn = () => {
    const now = driver.clock().boot;
    const since = hiddenSince;
    hiddenSince = document?.visibilityState === "hidden" ? now : undefined;
    if (hiddenSince !== undefined || since === undefined) return;
    if (now - since >= HIDDEN_MIN) driver.wake();
    else driver.tick();
  };
  page.addEventListener?.("pagehide", hide);
  page.addEventListener?.("pageshow", show);
  page.addEventListener?.("online", online);
  document?.addEventListener("visibilitychange", turn);
  return () => {
    page.removeEventListener?.("pagehide", hide);
    page.removeEventListener?.("pageshow", show);
    page.removeEventListener?.("online", online);
    document?.removeEventListener("visibilitychange", turn);
  };
}
