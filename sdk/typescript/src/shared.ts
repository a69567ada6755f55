import type { Seats } from "./core/answer.js";
import type { Micros } from "./core/clocks.js";
import type { Finish } from "./core/events.js";
import { type State, stateAt } from "./core/state.js";
import type { Slot } from "./slot.js";

/** The session of a seat. */
export interface Session {
  readonly id: string;
  readonly licenseId: string | undefined;
  readonly seats: Seats | undefined;
}

/** One seat's state, written by the driver alone. */
export class Shared {
  session: Session | undefined;
  /** The end of validity on the clock that counts sleep; 0 is invalid. */
  validUntil: Micros = 0;
  /** Settles with the result of the release. */
  readonly finished: Promise<Finish>;
  readonly finish: (finish: Finish) => void;
  readonly #listeners = new Set<(state: State) => void>();
  #state: State = { kind: "acquiring" };

  constructor(
    /** The instance id of a seat of one process. */
    readonly slot?: Slot,
  ) {
    let settle: (finish: Finish) => void = () => undefined;
    this.finished = new Promise((resolve) => {
      settle = resolve;
    });
    this.finish = (finish) => {
      // The next process may have the id, now that no release of this seat is on its way.
      slot?.close();
      settle(finish);
    };
  }

  /** Publishes a state; `isTold` tells the listeners. */
  publish(state: State, isTold: boolean): void {
    this.validUntil = "until" in state ? state.until : 0;
    this.#state = state;
    if (isTold) for (const listener of [...this.#listeners]) listener(state);
  }

  /** Returns the state at `now`. */
  state(now: Micros): State {
    return stateAt(this.#state, now);
  }

  /** Tells `listener` the present state and every change; returns a function that ends this. */
  listen(listener: (state: State) => void): () => void {
    this.#listeners.add(listener);
    listener(this.#state);
    return () => this.#listeners.delete(listener);
  }
}
