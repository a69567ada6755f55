import type { Clock } from "./clock.js";
import { type Micros, MILLISECOND, NEVER, type Now, SECOND, sleptSince } from "./core/clocks.js";
import type { Plan } from "./core/door.js";
import { EventKind } from "./core/events.js";
import { Hold } from "./hold.js";
import type { Platform } from "./platform.js";
import type { Server } from "./server.js";
import type { Tokens } from "./tokens.js";

/** The longest pause between two readings of the clocks: timers of many hosts do not count sleep. */
const LOOK_INTERVAL = SECOND;

/** The seats of a client, with one timer. */
export class Driver {
  readonly holds = new Set<Hold>();
  /** Seats may have event streams: a page in the back/forward cache may not, for an open connection would end it there. */
  mayStream: boolean;
  readonly #hasStreams: boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The time at which the timer fires; `NEVER` without one. */
  #firesAt = NEVER;
  #last: Now;

  constructor(
    readonly platform: Platform,
    readonly clock: Clock,
    readonly server: Server,
    readonly tokens: Tokens,
    hasStreams: boolean,
  ) {
    this.mayStream = this.#hasStreams = hasStreams;
    this.#last = clock();
  }

  /** The time on the clock that counts sleep. */
  get boot(): Micros {
    return this.clock().boot;
  }

  /** Starts an acquire. */
  start(plan: Plan): Hold {
    const hold = new Hold(this, plan);
    this.holds.add(hold);
    // The acquire waits for its answer alone.
    this.setTimer(this.boot + LOOK_INTERVAL);
    return hold;
  }

  /** Starts the release of every seat, and settles when all are over. */
  releaseAll(): Promise<unknown> {
    return Promise.all([...this.holds].map((hold) => hold.release()));
  }

  /** Gives back every seat of a page that goes away. */
  unload(): void {
    for (const hold of this.holds) hold.unload();
  }

  /** Closes the event streams of a page that enters the back/forward cache, until `wake`. */
  suspend(): void {
    this.mayStream = false;
    for (const hold of this.holds) hold.suspend();
  }

  /** Makes every seat ask the server at once. */
  wake(): void {
    this.mayStream = this.#hasStreams;
    for (const hold of this.holds) hold.step({ kind: EventKind.Wake });
  }

  /** Makes every held seat without a request in flight ask the server at once, and tells no outage. */
  ask(): void {
    for (const hold of this.holds) hold.ask();
  }

  /** Closes streams for a while: over HTTP/1.1 the streams of a browser's tabs may leave a request no connection. */
  yieldConnections(): void {
    if (this.server.isSharing) for (const hold of this.holds) hold.yieldConnection();
  }

  /** Fires the timers that are due. */
  tick(): void {
    const now = this.clock();
    const slept = sleptSince(now, this.#last);
    this.#last = now;
    let at = now.boot + LOOK_INTERVAL;
    for (const hold of this.holds) {
      hold.tick(now.boot, slept);
      at = Math.min(at, hold.tickBy);
    }
    this.#firesAt = NEVER;
    if (this.holds.size > 0) this.setTimer(at);
  }

  /** Sees to a tick at `at`. A timer that fires sooner stays: its tick looks at every seat. */
  setTimer(at: Micros): void {
    if (at >= this.#firesAt) return;
    this.#firesAt = at;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.tick(), Math.ceil(Math.max(0, at - this.boot) / MILLISECOND));
    // A held seat alone keeps no Node.js process alive; browsers have no such notion.
    (this.#timer as { unref?: () => void }).unref?.();
  }
}
