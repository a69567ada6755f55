import type { Seats } from "./core/answer.js";
import { SECOND } from "./core/clocks.js";
import type { State } from "./core/state.js";
import type { Driver } from "./driver.js";
import { SeatkeeperError, SeatLostError } from "./errors.js";
import type { Hold } from "./hold.js";

/**
 * A seat of a license.
 *
 * A seat is given back by `release`, by `await using`, by the `close` of its client, by a page that goes away, and by a
 * Node.js process that has nothing more to do. After a crash the server frees the seat once the TTL has passed.
 */
export class Seat {
  readonly #abort = new AbortController();
  readonly #hold: Hold;
  readonly #driver: Driver;

  /**
   * The reason for which a seat of `perProcess` got a random instance id; `undefined` if all is well. The text begins with
   * `no-home`, `unusable`, `not-a-directory`, `foreign-owner`, `writable-by-others` or `no-free-slot`, and names the place.
   */
  declare readonly warning?: string | undefined;

  /** Made by `License.acquire` alone. */
  constructor(hold: Hold, driver: Driver) {
    this.#hold = hold;
    this.#driver = driver;
    hold.listen((state) => {
      if (state.kind === "lost" || state.kind === "released") this.#abort.abort(this.#errorOf(state));
    });
  }

  /** The state of this instant. */
  get state(): State {
    return this.#hold.state;
  }

  /** True while the program may go on: see `check`. */
  get isValid(): boolean {
    return this.remaining > 0;
  }

  /** Seconds until the deadline of this instant, with the sleep of the host counted; 0 without a valid seat. */
  get remaining(): number {
    return Math.max(0, this.#hold.validUntil - this.#driver.clock().boot) / SECOND;
  }

  /**
   * Returns while the program may go on.
   *
   * Throws `SeatLostError` after a loss, and a `SeatkeeperError` with the code `unconfirmed` or `released` in the other
   * states without a seat.
   */
  check(): void {
    if (!this.isValid) throw this.#errorOf(this.state);
  }

  /** Aborts at the first loss, with a `SeatLostError` as its reason, and at the release. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /**
   * Notes that the user does something. From the first call on, every heartbeat tells the server for how long the user did
   * nothing. A call sends nothing by itself, and is cheap.
   */
  activity(): void {
    this.#hold.activity();
  }

  /** The id of the session, which changes when the seat is acquired again. */
  get sessionId(): string | undefined {
    return this.#hold.grant?.session;
  }

  /** The id of the license. */
  get licenseId(): string | undefined {
    return this.#hold.grant?.licenseId;
  }

  /** The seats in use and in total, at the time of the grant. */
  get seats(): Seats | undefined {
    return this.#hold.grant?.seats;
  }

  /**
   * Tells `callback` the present state and every change; returns a function that ends this.
   *
   * An error of the callback is reported as a warning, and costs no seat. A deadline that merely moves is no change.
   */
  onChange(callback: (state: State) => unknown): () => void {
    return this.#hold.listen((state) => {
      Promise.resolve(state).then(callback).catch(this.#driver.platform.report);
    });
  }

  /** Yields the present state and every change; ends after `released`, and after `lost` without `retry`. */
  async *states(): AsyncGenerator<State, void, undefined> {
    const told: State[] = [];
    let wake: () => void = () => undefined;
    const stop = this.#hold.listen((state) => {
      told.push(state);
      wake();
    });
    try {
      for (;;) {
        const state = told.shift();
        if (state === undefined) {
          await this.#driver.platform.wait(new Promise<void>((resolve) => (wake = resolve)));
          continue;
        }
        yield state;
        if (state.kind === "released" || (state.kind === "lost" && !state.retry)) return;
      }
    } finally {
      stop();
    }
  }

  /**
   * Gives the seat back, within two seconds. The promise is never rejected, and is true if the server confirmed.
   * Otherwise the seat is free one TTL after the last heartbeat at the latest. A second call has no effect.
   */
  async release(): Promise<boolean> {
    this.#hold.release();
    return (await this.#driver.platform.wait(this.#hold.finished)) === "given-back";
  }

  /** Gives the seat back at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  #errorOf(state: State): SeatkeeperError {
    if (state.kind === "lost") return this.#driver.platform.explain(new SeatLostError(state));
    if (state.kind === "released") return new SeatkeeperError("released", "the seat is released: acquire another one");
    return new SeatkeeperError("unconfirmed", "the seat is not confirmed: wait until its state is active again");
  }
}
