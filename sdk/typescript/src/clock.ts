/** The clocks of this host. */

import { type Micros, type Now, SECOND } from "./core/clocks.js";

/** Wall clock and monotonic clock that part by more than this hint at a sleep of the host, or at a clock that was set. */
const GAP_MIN = SECOND;

/** Reads all three clocks. */
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
 * The clock that counts sleep is `monotonic` plus each gap by which `wall` ran ahead. A wall clock that is set ahead looks
 * like a sleep, and costs one heartbeat; one that is set back changes nothing. Where the host knows better, `measure` returns
 * the sleep behind a gap, at the reading `mono`.
 */
export function clockFrom(monotonic: Source, wall: Source, measure = (gap: Micros, _mono: Micros): Micros => gap): Clock {
  let slept: Micros = 0;
  let lead = wall() - monotonic();
  return () => {
    const [exact, day] = [monotonic(), wall()];
    let gap = day - exact - lead;
    lead += gap;
    if (Math.abs(gap) > GAP_MIN) gap = measure(gap, exact);
    if (gap > GAP_MIN) slept += gap;
    const mono = Math.floor(exact);
    return { mono, boot: mono + Math.floor(slept), wall: day };
  };
}
