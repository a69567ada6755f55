import { type Micros, NEVER, SECOND } from "./core/clocks.js";
import { isObject, parseObject, text } from "./core/json.js";
import { backoff } from "./core/retry.js";
import type { Opened } from "./server.js";
import { EventParser } from "./sse.js";

/** The server sends a comment every 15 s: three missed comments are a dead connection. */
const SILENCE_MAX = 45 * SECOND;
/** The longest backoff. */
const BACKOFF_MAX = 60 * SECOND;
/** The number of doublings to the longest backoff. */
const DOUBLINGS_MAX = 6;
/** A stream that lived this long starts the backoff anew. */
const LIFE_MIN = 60 * SECOND;

/** The driver's side of a stream. */
export interface StreamHost {
  /** Reads the clock that counts sleep. */
  readonly boot: Micros;
  /** Returns the token of the moment. */
  streamToken(): Promise<string>;
  /** Sends the request for the stream of `session`. */
  openStream(session: string, token: string, lastEventId: string | undefined, signal: AbortSignal): Promise<Opened>;
  /** Takes the end of the session; without a reason, the end of the stream. */
  ended(reason?: string, by?: string): void;
  /** Takes the arrival of bytes at `now`, also of a comment. */
  heard(now: Micros): void;
}

/**
 * The event stream of one session: tells the end of the session at once.
 *
 * A stream is a help alone: a failure is retried with backoff, and told to nobody. `tick` is due at `wakeAt`.
 */
export class EventStream {
  /** The time at which the stream wants a tick: the next try, or the end of patience with a silent connection. */
  wakeAt: Micros = 0;
  readonly #host: StreamHost;
  #connection: AbortController | undefined;
  #failures = 0;
  /** The time at which the answer of the connection began; `NEVER` before. */
  #openSince!: Micros;
  #parser = new EventParser();
  /** The token that the server rejected: no try before there is another. */
  #rejected: string | undefined;

  /** Opens the stream of `session` at the next tick. */
  constructor(
    readonly session: string,
    host: StreamHost,
  ) {
    this.#host = host;
  }

  /** Connects when the backoff is over, and drops a connection that has been silent for too long. */
  tick(now: Micros): void {
    if (now < this.wakeAt) return;
    if (this.#connection) this.#retry();
    else this.#connect();
  }

  /** Connects anew at once: the server is another one, or the token is fresh. */
  reconnect(): void {
    if (this.wakeAt === NEVER) return;
    this.#failures = 0;
    this.#connect();
  }

  /** Drops the connection for one long backoff, so that requests get the connection. */
  yieldConnection(): void {
    if (!this.#connection) return;
    this.#failures = DOUBLINGS_MAX;
    this.close();
    this.#retry();
  }

  /** Ends the stream for good. */
  close(): void {
    this.#connection?.abort();
    this.#connection = undefined;
    this.wakeAt = this.#openSince = NEVER;
  }

  #connect(): void {
    this.close();
    const { signal } = (this.#connection = new AbortController());
    this.wakeAt = this.#host.boot + SILENCE_MAX;
    const retry = () => signal.aborted || this.#retry();
    this.#read(signal).then(retry, retry);
  }

  /** Closes the connection, and plans the next try. */
  #retry(): void {
    const now = this.#host.boot;
    if (now - this.#openSince >= LIFE_MIN) this.#failures = 0;
    this.close();
    this.wakeAt = now + backoff(this.#failures++, BACKOFF_MAX, Math.random());
  }

  /** Connects, and reads until the connection ends. */
  async #read(signal: AbortSignal): Promise<void> {
    const token = await this.#host.streamToken();
    if (signal.aborted || token === this.#rejected) return;
    const answer = await this.#host.openStream(this.session, token, this.#parser.lastEventId, signal);
    const { status, type } = answer;
    if (signal.aborted) return;
    if (status === 401) this.#rejected = token;
    // 204: the end of the session was told. 404: the session is none of the caller's.
    if (status === 204 || status === 404) {
      this.close();
      this.#host.ended();
    }
    if (status !== 200 || !type.startsWith("text/event-stream")) return;
    this.#openSince = this.#host.boot;
    this.#parser.reset();
    const decoder = new TextDecoder();
    for (let piece; (piece = await answer.read()) && !signal.aborted; ) {
      const now = this.#host.boot;
      this.wakeAt = now + SILENCE_MAX;
      for (const event of this.#parser.push(decoder.decode(piece, { stream: true }))) this.#take(event);
      if (!signal.aborted) this.#host.heard(now);
    }
  }

  /** Tells an end. Every event with a reason is one; events of later servers are ignored. */
  #take(data: string): void {
    const { sessionId, reason, by } = parseObject(data) ?? {};
    // The cause is the name, the type or the session of the successor.
    const cause = isObject(by) ? (by["deviceName"] ?? by["deviceType"] ?? by["sessionId"]) : by;
    if (typeof reason === "string" && sessionId === this.session) this.#host.ended(reason, text(cause));
  }
}
