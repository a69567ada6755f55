/** The clocks of this host. */

import { type Micros, type Now, SECOND } from "./core/clocks.js";

/** Wall clock and monotonic clock that part by more than this hint at a sleep of the host, or at a clock that was set. */
export const GAP_MIN = SECOND;

/** Reads the clocks. */
export type Clock = () => Now;

/** A source of time; returns microseconds. */
export type Source = () => Micros;

/** The clock that nobody sets. */
export const monotonic: Source = () => performance.now() * 1_000;

/** The clock of the day, which its user may set. */
export const wall: Source = () => Date.now() * 1_000;

/**
 * Returns a clock over `monotonic`, which stands still while many hosts sleep.
 *
 * The clock that counts sleep is `monotonic` plus each gap by which `day` ran ahead. `day` gets the reading of `monotonic`. A
 * `day` that is set ahead looks like a sleep, and costs one heartbeat; one that is set back changes nothing.
 */
export function clockFrom(monotonic: Source, day: (mono: Micros) => Micros): Clock {
  let slept: Micros = 0;
  let lead = day(monotonic()) - monotonic();
  return () => {
    const mono = monotonic();
    const gap = day(mono) - mono - lead;
    lead += gap;
    if (gap > GAP_MIN) slept += gap;
    return { mono, boot: Math.floor(mono + slept) };
  };
}
