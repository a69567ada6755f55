import type { Door } from "./core/door.js";
import { eventsPath } from "./core/request.js";
import { EventStream, type Follower, readEvent, type SeatStream, type StreamDriver } from "./event-stream.js";

/** The event stream of one session, for pages: a page holds few seats. */
export class SingleStream extends EventStream implements SeatStream {
  constructor(
    readonly session: string,
    private readonly seat: Follower,
    driver: StreamDriver,
    door: Door,
  ) {
    super(driver, door);
  }

  protected override path(): string {
    return eventsPath(this.door, this.session);
  }

  protected override answered(status: number): void {
    // 204: the end of the session was told. 404: the session is none of the caller's.
    if (status === 204 || status === 404) {
      this.close();
      this.seat.ended();
    }
  }

  /** Tells an end; events of later servers are ignored. */
  protected override take(event: string): void {
    const { sessionId, reason, by } = readEvent(event);
    if (reason && sessionId === this.session) this.seat.ended(reason, by);
  }
}
