/** The event streams of a program with many seats: one connection tells the ends of up to a hundred sessions. */

import { type Micros, MILLISECOND, NEVER, SECOND } from "./core/clocks.js";
import type { Door } from "./core/door.js";
import { EventStream, type Follower, readEvent, type SeatStream, type StreamDriver } from "./event-stream.js";
import { nameOf } from "./sse.js";
import { fateOf, sessionsOf, sharedPath, type StreamGroup, StreamGroups } from "./stream-groups.js";
import type { Bearer } from "./tokens.js";

/** The pause before a stream is opened for a seat that joins: seats that are acquired together cost one request. */
const JOIN_PAUSE = 100 * MILLISECOND;
/** The longest such pause: a series of joins doubles the pause, so that streams stay open meanwhile. */
const JOIN_PAUSE_MAX = 1_600 * MILLISECOND;
/** A join that comes later than this after the last reopening begins a new series. */
const SERIES_GAP = 2 * SECOND;

/** The groups of the seats with each token. */
const groupsByBearer = new WeakMap<Bearer, StreamGroups<Subscription, SharedStream>>();
/** The latest session of each seat whose stream no other seat joins. */
const separated = new WeakMap<Follower, string>();

function groupsOf(bearer: Bearer): StreamGroups<Subscription, SharedStream> {
  const groups = groupsByBearer.get(bearer) ?? new StreamGroups();
  groupsByBearer.set(bearer, groups);
  return groups;
}

/** The subscription of a seat to a `SharedStream`, for one session. */
export class Subscription implements SeatStream {
  /** `undefined` after `close`. */
  #stream: SharedStream | undefined;
  /** The deadline of the seat when an end of the session was last told. */
  #toldUntil: Micros | undefined;

  constructor(
    readonly session: string,
    readonly seat: Follower,
    private readonly driver: StreamDriver,
    private readonly door: Door,
  ) {
    this.#stream = separated.get(seat) === session ? this.#alone() : this.#shared();
  }

  get wakeAt(): Micros {
    return this.#stream?.dueAt ?? NEVER;
  }

  tick(now: Micros): void {
    this.#stream?.tick(now);
  }

  reconnect(): void {
    this.#stream?.reconnect();
  }

  yieldConnection(): void {
    this.#stream?.yieldConnection();
  }

  close(): void {
    this.#stream?.leave(this);
    this.#stream = undefined;
  }

  /**
   * Tells the seat an end of the session, which the seat confirms by a heartbeat. Each opening of the stream tells the end
   * again. Such repetitions are ignored until a heartbeat is answered as live, which moves the deadline of the seat.
   */
  tell(reason: string, by: string | undefined): void {
    const { until } = this.seat.state as { until?: Micros };
    if (until !== undefined && until === this.#toldUntil) return;
    this.#toldUntil = until;
    this.seat.ended(reason, by);
  }

  /** Ends the stream for this session; the seat asks the server. */
  end(): void {
    this.close();
    this.seat.ended();
  }

  /** Moves the session to a stream that no other seat joins. */
  separate(): void {
    this.close();
    separated.set(this.seat, this.session);
    this.#stream = this.#alone();
    this.#stream.tick(this.driver.boot);
  }

  #alone(): SharedStream {
    const stream = this.#begin();
    stream.members.add(this);
    return stream;
  }

  #shared(): SharedStream {
    const groups = groupsOf(this.driver.tokens.bearer(this.door.holder));
    const stream = groups.join(this, this.door, () => this.#begin());
    stream.joined();
    return stream;
  }

  #begin(): SharedStream {
    return new SharedStream(this.driver, this.door);
  }
}

/** The stream of a group of seats: each request names the sessions of the group at that time. */
class SharedStream extends EventStream implements StreamGroup<Subscription> {
  readonly members = new Set<Subscription>();
  /** The time at which the open stream is opened anew for seats that joined; `NEVER` if the stream is not open. */
  #reopenAt: Micros = NEVER;
  /** The reopenings of the present series of joins, and the time of the latest one. */
  #reopenings = 0;
  #reopenedAt: Micros = -NEVER;
  /** The head of an answer with status 200 came on the present connection. */
  #isOpen = false;
  /** The sessions of the latest request. */
  #sessions: readonly string[] = [];
  /** The generation of the token at the latest request. */
  #generation: number | undefined;

  /** The time at which the stream wants a tick. */
  get dueAt(): Micros {
    return Math.min(this.wakeAt, this.#reopenAt);
  }

  /**
   * Plans a request that names a seat that joined. A join cuts no request short whose answer has not begun, and no backoff: the
   * request after it names the seat anyway.
   */
  joined(): void {
    // A stream that was never opened has a `wakeAt` of 0.
    this.wakeAt ||= this.driver.boot + JOIN_PAUSE;
    if (this.#isOpen) this.#planReopening();
  }

  /** Removes a seat. The connection still tells of its session; a stream without seats is closed. */
  leave(member: Subscription): void {
    groupsOf(this.bearer).leave(member, this);
    if (this.members.size === 0) this.close();
  }

  override tick(now: Micros): void {
    if (now >= this.#reopenAt) this.#reopen(now);
    super.tick(now);
  }

  /** Connects anew unless the connection has the fresh token: each of the seats reports the token. */
  override reconnect(): void {
    const isFresh = this.#generation !== this.bearer.generation;
    // The pause before the first request goes on.
    if (isFresh && this.#generation !== undefined) super.reconnect();
  }

  override close(): void {
    this.#reopenAt = NEVER;
    this.#isOpen = false;
    super.close();
  }

  protected override connect(): void {
    this.#generation = this.bearer.generation;
    super.connect();
  }

  protected override path(): string {
    const sessions = sessionsOf(this.members);
    // The id of an event counts for a stream of the same session alone.
    if (sessions.join() !== this.#sessions.join()) this.lastEventId = undefined;
    this.#sessions = sessions;
    return sharedPath(this.door, sessions);
  }

  protected override answered(status: number): void {
    this.#isOpen = status === 200;
    if (this.#isOpen && this.#isStale) {
      this.#planReopening();
      // No byte may follow whose arrival sets the timer.
      queueMicrotask(() => this.driver.tick());
    }
    const fate = fateOf(status, this.#isShared);
    if (!fate) return;
    for (const member of this.members) {
      // The request did not name the seats that joined since.
      if (!this.#sessions.includes(member.session)) continue;
      if (fate === "over") member.end();
      else member.separate();
    }
  }

  /** Tells an end to the seats of its session; events of later servers are ignored. */
  protected override take(event: string): void {
    const { sessionId, reason, by } = readEvent(event);
    const isUnknown = this.#isShared && nameOf(event) === "unknown";
    for (const member of this.members) {
      if (member.session !== sessionId) continue;
      if (isUnknown) member.separate();
      else if (reason) member.tell(reason, by);
    }
  }

  /** The latest request named several sessions. */
  get #isShared(): boolean {
    return this.#sessions.length > 1;
  }

  /** The latest request did not name every session. */
  get #isStale(): boolean {
    return sessionsOf(this.members).some((session) => !this.#sessions.includes(session));
  }

  /** Plans to open the stream anew, after a pause that begins with the first join. */
  #planReopening(): void {
    if (this.#reopenAt < NEVER) return;
    const { boot } = this.driver;
    if (boot - this.#reopenedAt >= SERIES_GAP) this.#reopenings = 0;
    this.#reopenAt = boot + Math.min(JOIN_PAUSE * 2 ** this.#reopenings, JOIN_PAUSE_MAX);
  }

  /** Opens the stream anew unless the seats that joined have left. The life of the stream goes on. */
  #reopen(now: Micros): void {
    this.#reopenAt = NEVER;
    if (!this.#isStale) return;
    const { openSince } = this;
    this.#reopenings += 1;
    this.#reopenedAt = now;
    this.connect();
    this.openSince = openSince;
  }
}
