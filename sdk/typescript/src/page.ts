/** Pages: their end, their return from sleep, and the errors of their scripts. */

import { clockFrom, monotonic, wall } from "./clock.js";
import { NEVER, SECOND } from "./core/clocks.js";
import type { Driver } from "./driver.js";
import type { Platform } from "./platform.js";
import { SingleStream } from "./single-stream.js";

/** The parts of a page that the client uses. */
export interface Host {
  addEventListener: Window["addEventListener"];
  /** A worker has none. */
  document?: Pick<Document, "addEventListener" | "visibilityState">;
}

/** A page that was hidden for less than this had no late timer: browsers then fire timers once a second. */
const HIDDEN_MIN = 10 * SECOND;

/** A page, or a worker of a page. */
export const page: Platform = {
  clock: () => clockFrom(monotonic, wall),
  attach: (driver) => attachToPage(driver, globalThis),
  Stream: SingleStream,
  report: (error) => reportError(error),
  explain: (error) => error,
  wait: (promise) => promise,
};

/** Connects the driver with the events of a page; returns a function that ends this. */
export function attachToPage(driver: Driver, host: Host): () => void {
  const attached = new AbortController();
  const isHidden = () => host.document?.visibilityState === "hidden";
  let hiddenSince = isHidden() ? driver.boot : NEVER;
  // A page in the back/forward cache may come back, and keeps its seat.
  host.addEventListener("pagehide", ({ persisted }) => (persisted ? driver.suspend() : driver.unload()), attached);
  host.addEventListener("pageshow", ({ persisted }) => persisted && driver.wake(), attached);
  host.addEventListener("online", () => driver.wake(), attached);
  const turn = () => {
    const since = hiddenSince;
    hiddenSince = isHidden() ? driver.boot : NEVER;
    driver.tick();
    if (driver.boot - since >= HIDDEN_MIN) driver.ask();
  };
  host.document?.addEventListener("visibilitychange", turn, attached);
  return () => attached.abort();
}
