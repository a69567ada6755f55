import { type Micros, NEVER, SECOND } from "./core/clocks.js";
import type { Door } from "./core/door.js";
import { isObject, parseObject, text } from "./core/json.js";
import { backoff } from "./core/retry.js";
import type { State } from "./core/state.js";
import type { Server } from "./server.js";
import { dataOf, idOf, splitEvents } from "./sse.js";
import type { Bearer, Tokens } from "./tokens.js";

/** The server sends a comment every 15 s: three missed comments are a dead connection. */
const SILENCE_MAX = 45 * SECOND;
/** The longest backoff. */
const BACKOFF_MAX = 60 * SECOND;
/** The number of doublings to the longest backoff. */
const DOUBLINGS_MAX = 6;
/** A stream that lived this long starts the backoff anew. */
const LIFE_MIN = 60 * SECOND;

/** The driver of the seat of a stream. */
export interface StreamDriver {
  /** Reads the clock that counts sleep. */
  readonly boot: Micros;
  readonly server: Pick<Server, "open">;
  readonly tokens: Tokens;
  /** Fires the timers that are due: timers of a hidden page are late by a minute, and bytes are not. */
  tick(): void;
}

/** A seat that follows its session on a stream. */
export interface Follower {
  readonly state: State;
  /** Takes the end of the session; without a reason, the end of the stream. */
  ended(reason?: string, by?: string): void;
}

/** The event stream of a session, for the seat: tells the end of the session at once. */
export interface SeatStream {
  readonly session: string;
  /**
   * The time at which the stream wants a tick: the next try, or the end of patience with a silent connection. `NEVER` after
   * the end of the stream: the session gets no further one.
   */
  readonly wakeAt: Micros;
  /** Connects when the backoff is over, and drops a connection that has been silent for too long. */
  tick(now: Micros): void;
  /** Connects anew at once: the token is fresh. */
  reconnect(): void;
  /** Drops the connection for one long backoff, so that requests get the connection. */
  yieldConnection(): void;
  /** Ends the stream for good. */
  close(): void;
}

/**
 * A connection for server-sent events that is opened again and again.
 *
 * A stream is a help alone: a failure is retried with backoff, and told to nobody. `tick` is due at `wakeAt`.
 */
export abstract class EventStream {
  wakeAt: Micros = 0;
  /** The id of the latest event, for the header `Last-Event-ID`. */
  protected lastEventId: string | undefined;
  protected readonly bearer: Bearer;
  /** The time at which the answer of the connection, or of a connection that this one replaced, began; `NEVER` before. */
  protected openSince!: Micros;
  #connection: AbortController | undefined;
  #failures = 0;
  /** The token that the server rejected: no try before there is another. */
  #rejected: string | undefined;

  /** Opens the stream at the next tick, with the token of a seat at this door. */
  constructor(
    protected readonly driver: StreamDriver,
    readonly door: Door,
  ) {
    this.bearer = driver.tokens.bearer(door.holder);
  }

  tick(now: Micros): void {
    if (now < this.wakeAt) return;
    if (this.#connection) this.#retry();
    else this.connect();
  }

  reconnect(): void {
    if (this.wakeAt === NEVER) return;
    this.#failures = 0;
    this.connect();
  }

  yieldConnection(): void {
    if (!this.#connection) return;
    this.#failures = DOUBLINGS_MAX;
    this.close();
    this.#retry();
  }

  close(): void {
    this.#connection?.abort();
    this.#connection = undefined;
    this.wakeAt = this.openSince = NEVER;
  }

  /** Returns the path of the next request. */
  protected abstract path(): string;

  /** Takes the status of an answer, which may end the stream. */
  protected abstract answered(status: number): void;

  /** Takes the text of an event. */
  protected abstract take(event: string): void;

  /** Opens another connection in place of the present one. */
  protected connect(): void {
    this.close();
    const { signal } = (this.#connection = new AbortController());
    this.wakeAt = this.driver.boot + SILENCE_MAX;
    const retry = () => signal.aborted || this.#retry();
    this.#read(signal).then(retry, retry);
  }

  /** Closes the connection, and plans the next try. */
  #retry(): void {
    const now = this.driver.boot;
    if (now - this.openSince >= LIFE_MIN) this.#failures = 0;
    this.close();
    this.wakeAt = now + backoff(this.#failures++, BACKOFF_MAX, Math.random());
  }

  /** Connects, and reads until the connection ends. */
  async #read(signal: AbortSignal): Promise<void> {
    const token = await this.bearer.current("GET");
    if (signal.aborted || token === this.#rejected) return;
    const answer = await this.driver.server.open(this.path(), token, this.lastEventId, signal);
    const { status, type } = answer;
    if (signal.aborted) return;
    if (status === 401) this.#rejected = token;
    this.answered(status);
    if (status !== 200 || !type.startsWith("text/event-stream")) return;
    this.openSince = Math.min(this.openSince, this.driver.boot);
    const decoder = new TextDecoder();
    // The begin of an event whose end has not arrived.
    let rest = "";
    for (let piece; (piece = await answer.read()) && !signal.aborted; ) {
      this.wakeAt = this.driver.boot + SILENCE_MAX;
      const events = splitEvents(rest + decoder.decode(piece, { stream: true }));
      rest = events.pop()!;
      for (const event of events) {
        this.lastEventId = idOf(event) ?? this.lastEventId;
        this.take(event);
      }
      if (!signal.aborted) this.driver.tick();
    }
  }
}

/** The members of an event about a session. An event with a reason tells the end of the session. */
interface SessionEvent {
  readonly sessionId: unknown;
  readonly reason: string | undefined;
  readonly by: string | undefined;
}

/** Reads the data of an event. */
export function readEvent(event: string): SessionEvent {
  const { sessionId, reason, by } = parseObject(dataOf(event)) ?? {};
  // The cause is the name, the type or the session of the successor.
  const cause = isObject(by) ? (by["deviceName"] ?? by["deviceType"] ?? by["sessionId"]) : by;
  return { sessionId, reason: text(reason), by: text(cause) };
}
