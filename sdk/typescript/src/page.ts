/** Pages: their end, their return from sleep, and the errors of their scripts. */

import { clockFrom, monotonic, wall } from "./clock.js";
import { SECOND } from "./core/clocks.js";
import type { Driver } from "./driver.js";
import type { Platform } from "./platform.js";
import { FetchOpener } from "./stream-opener.js";

/** The parts of a page that the client uses. */
export interface Host {
  addEventListener?: typeof addEventListener;
  removeEventListener?: typeof removeEventListener;
  document?: Pick<Document, "addEventListener" | "removeEventListener" | "visibilityState">;
  reportError?: (error: unknown) => void;
}

const host = globalThis as Host;
/** A page that was hidden for less than this had no late timer: browsers then fire timers once a second. */
const HIDDEN_MIN = 10 * SECOND;

/** A page, or any other host that is not known. */
export const page: Platform = {
  clock: () => clockFrom(monotonic, wall),
  opener: (send) => new FetchOpener(send),
  attach: (driver) => attachToPage(driver, host),
  report: (error) => host.reportError?.(error),
};

/** Connects the driver with the events of a page; returns a function that ends this. */
export function attachToPage(driver: Driver, host: Host): () => void {
  const { document } = host;
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
  host.addEventListener?.("pagehide", hide);
  host.addEventListener?.("pageshow", show);
  host.addEventListener?.("online", online);
  document?.addEventListener("visibilitychange", turn);
  return () => {
    host.removeEventListener?.("pagehide", hide);
    host.removeEventListener?.("pageshow", show);
    host.removeEventListener?.("online", online);
    document?.removeEventListener("visibilitychange", turn);
  };
}
