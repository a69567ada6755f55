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
 * The clock that counts sleep is `monotonic` plus each gap by which `wall` ran ahead. Where there is an `uptime`, which
 * includes sleep and which nobody sets, the uptime measures the gap. Elsewhere a wall clock that is set ahead looks
 * like a sleep, and costs one heartbeat. A wall clock that is set back changes nothing.
 */
export function clockFrom(monotonic: Source, wall: Source, uptime?: Source): Clock {
  let slept: Micros = 0;
  let last = { mono: monotonic(), wall: wall() };
  let lastUptime = { mono: last.mono, uptime: uptime?.() ?? 0 };
  return () => {
    const now = { mono: monotonic(), wall: wall() };
    let gap = now.wall - last.wall - (now.mono - last.mono);
    last = now;
    // The uptime is slow to read: the wall clock says when to look.
    if (Math.abs(gap) > GAP_MIN && uptime !== undefined) {
      const seen = { mono: now.mono, uptime: uptime() };
      gap = seen.uptime - lastUptime.uptime - (seen.mono - lastUptime.mono);
      lastUptime = seen;
    }
    if (gap > GAP_MIN) slept += gap;
    const mono = Math.floor(now.mono);
    return { mono, boot: mono + Math.floor(slept), wall: now.wall };
  };
}
