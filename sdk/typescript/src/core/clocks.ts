/** Readings of the clocks of a client, and arithmetic on the clock that decides. */

/** A point or a span in microseconds. Whole numbers have exact sums for longer than any seat lives. */
export type Micros = number;

export const MILLISECOND: Micros = 1_000;
export const SECOND: Micros = 1_000_000;
/** The end of time: a deadline that never passes. */
export const NEVER: Micros = Infinity;

/** One reading of the clocks; each clock has an origin of its own. */
export interface Now {
  /** The monotonic clock, which may stand still while the host sleeps. */
  readonly mono: Micros;
  /** The monotonic clock that counts sleep, in whole microseconds. Every deadline uses this clock. */
  readonly boot: Micros;
}

/** A gap between `boot` and `mono` longer than this is a sleep of the host. */
const SLEEP_GAP = 2 * SECOND;

/** Returns true if the host slept between `earlier` and `now`. */
export function sleptSince(now: Now, earlier: Now): boolean {
  return now.boot - earlier.boot - (now.mono - earlier.mono) > SLEEP_GAP;
}

/** Returns the part of `span` between `low` and `high` that the random number `jitter` stands for. */
export function jittered(span: Micros, low: number, high: number, jitter: number): Micros {
  return Math.round(span * (low + (high - low) * jitter));
}
