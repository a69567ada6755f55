import type { Micros } from "./clocks.js";
import type { Event } from "./events.js";
import type { Context } from "./exchange.js";
import type { Lease } from "./lease.js";
import type { State } from "./state.js";

/** One phase of a machine, with the data that is valid in the phase; `step` and `wake` return the phase that follows. */
export interface Phase {
  /** The lease, while the phase has one. */
  readonly lease?: Lease;
  readonly state: State;
  /** The time at which the phase wants a tick; `undefined` if the phase waits for other events alone. */
  readonly wakeAt: Micros | undefined;
  /** Voids the request in flight after a sleep of the host, and asks the server before any other work. */
  wake(context: Context): Phase;
  step(event: Event, context: Context): Phase;
}
