/// <reference lib="esnext.disposable" preserve="true" />
import type { Seats } from "./core/answer.js";
import type { State } from "./core/state.js";

/**
 * A seat of a license, or a screen of a subscriber.
 *
 * A seat is given back by `release`, by `await using`, by the `close` of its client, by a page that goes away, and by a
 * Node.js process that has nothing more to do. After a crash the server frees the seat once the TTL has passed.
 */
export interface Seat extends AsyncDisposable {
  /** The state of this instant. */
  readonly state: State;

  /** True while the program may go on: see `check`. */
  readonly isValid: boolean;

  /** Seconds until the deadline of this instant, with the sleep of the host counted; 0 without a valid seat. */
  readonly remaining: number;

  /**
   * Returns while the program may go on.
   *
   * Throws `SeatLostError` after a loss, and a `SeatkeeperError` with the code `unconfirmed` or `released` in the other
   * states without a seat.
   */
  check(): void;

  /** Aborts at the first loss, with a `SeatLostError` as its reason, and at the release. */
  readonly signal: AbortSignal;

  /**
   * Notes that the user does something. From the first call on, every heartbeat tells the server for how long the user did
   * nothing. A call sends nothing by itself, and is cheap.
   */
  activity(): void;

  /** The id of the session, which changes when the seat is acquired again. */
  readonly sessionId: string | undefined;

  /** The id of the license. */
  readonly licenseId: string | undefined;

  /** The seats in use and in total, at the time of the grant. */
  readonly seats: Seats | undefined;

  /**
   * The reason for which a seat of `perProcess` got a random instance id; `undefined` if all is well. The text begins with
   * `no-home`, `unusable`, `not-a-directory`, `foreign-owner`, `writable-by-others` or `no-free-slot`, and names the place.
   */
  readonly warning?: string | undefined;

  /**
   * Tells `callback` the present state and every change; returns a function that ends this.
   *
   * An error of the callback is reported as a warning, and costs no seat. A deadline that merely moves is no change.
   */
  onChange(callback: (state: State) => unknown): () => void;

  /** Yields the present state and every change; ends after `released`, and after `lost` without `retry`. */
  states(): AsyncGenerator<State, void, undefined>;

  /**
   * Gives the seat back, within two seconds. The promise is never rejected, and is true if the server confirmed.
   * Otherwise the seat is free one TTL after the last heartbeat at the latest. A second call has no effect.
   */
  release(): Promise<boolean>;

  /**
   * Stops the heartbeats without a release, if a second program keeps the seat for the holder. Otherwise the seat is free
   * after the TTL. The state is then `released`; after `release` the call has no effect.
   */
  leave(): void;
}
