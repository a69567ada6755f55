import type { Clock } from "./clock.js";
import type { Door } from "./core/door.js";
import type { Driver } from "./driver.js";
import type { SeatkeeperError } from "./errors.js";
import type { Follower, SeatStream, StreamDriver } from "./event-stream.js";

/** The parts of a client that differ between a page and Node.js. */
export interface Platform {
  /** True if the timers of a host that is awake fire in time: browsers delay the timers of a hidden page by a minute. */
  readonly isPunctual?: boolean;
  /** Returns the clock of this host. */
  clock(): Clock;
  /** Connects the driver with the events of its host; returns a function that ends this. */
  attach(driver: Driver): () => void;
  /** The class of event streams: each session that a seat holds gets an instance, which connects at a tick. */
  readonly Stream: new (session: string, seat: Follower, driver: StreamDriver, door: Door) => SeatStream;
  /** Reports an error of the program's own code without ending the program. */
  report(error: unknown): void;
  /** Returns the error with what its reader can do about it, where the host has room for such texts. */
  explain(error: SeatkeeperError): SeatkeeperError;
  /** Keeps the program running until the promise settles. */
  wait<T>(promise: Promise<T>): Promise<T>;
}
