import type { Clock } from "./clock.js";
import type { Driver } from "./driver.js";
import type { Slot } from "./slot.js";
import type { StreamOpener } from "./stream-opener.js";

/** The parts of a client that differ between a page and Node.js. */
export interface Platform {
  /** Returns the clock of this host. */
  clock(): Clock;
  /** Returns the way to open event streams; `isOwn` says that `send` is a function of the program. */
  opener(send: typeof fetch, isOwn: boolean): StreamOpener;
  /** Connects the driver with the events of its host; returns a function that ends this. */
  attach(driver: Driver): () => void;
  /** Reports an error of the program's own code without ending the program. */
  report(error: unknown): void;
  /** The remedies in the texts of errors: see `REMEDIES`. */
  readonly remedies?: Readonly<Record<string, string>>;
  /** Takes the instance id of a seat of one process; absent where a program has no files. */
  takeSlot?(stateDir: string | null | undefined, server: string, license: string, machineId: string): Promise<Slot>;
}
